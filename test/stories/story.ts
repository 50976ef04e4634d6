import fc from "fast-check";

/**
 * What one person does with some sheets, one thing after the other. Numbers choose among what is there when it is done,
 * so that a part of a story is a story too.
 */
export type Deed =
  | { do: "edit"; sheet: number; how: Edit; row: number; other: number }
  | { do: "file"; sheet: number; how: "rename" | "copy" | "delete"; name: number }
  | { do: "run"; sheet: number; flags: Flags; trouble: Trouble }
  | { do: "resume"; run: number; trouble: Trouble }
  | { do: "redo"; row: number; trouble: Trouble }
  | { do: "retry" }
  | { do: "resolve"; how: "--skip" | "--resubmit" | "--refetch" }
  | { do: "cancel" }
  | { do: "save plan"; sheet: number }
  | { do: "run plan" }
  | { do: "lose file"; file: number }
  | { do: "lose state" }
  | { do: "move" }
  | { do: "back up" }
  | { do: "restore" }
  | { do: "rebuild" };

export type Edit = "add" | "build on" | "remove" | "reword" | "swap ids" | "rename id" | "reverse" | "repeat";

/** What goes wrong during a command: somebody presses Ctrl-C at its nth paid request, or the answer to that is lost. */
export interface Trouble {
  kind: "none" | "interrupt" | "unanswered" | "unsent";
  nth: number;
}

export const flagSets = [
  [],
  [],
  [],
  ["--first", "2"],
  ["--range", "2:3"],
  ["--only-failed"],
  ["--duplicates", "merge"],
  ["--edition", "spring"],
  ["--fresh"],
  ["--job", "set"],
  ["--job", "other"],
  ["--max-credits", "2"],
  ["--missing", "fetch"],
  ["--missing", "pay"],
  ["--retries", "0"],
  ["--out", "elsewhere"],
] as const;
export type Flags = (typeof flagSets)[number];

const any = fc.nat(59);
const trouble: fc.Arbitrary<Trouble> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Trouble>({ kind: "none", nth: 0 }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom<Trouble["kind"]>("interrupt", "interrupt", "unanswered", "unsent"),
      nth: fc.nat(3),
    }),
  },
);
const deed = <Name extends Deed["do"]>(name: Name) =>
  fc.record({ do: fc.constant(name) }) as fc.Arbitrary<Deed>;

const deeds: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("edit" as const),
      sheet: any,
      how: fc.constantFrom<Edit>(
        "add",
        "build on",
        "build on",
        "remove",
        "reword",
        "swap ids",
        "rename id",
        "reverse",
        "repeat",
      ),
      row: any,
      other: any,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("file" as const),
      sheet: any,
      how: fc.constantFrom("rename" as const, "copy" as const, "delete" as const),
      name: any,
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("run" as const),
      sheet: any,
      flags: fc.constantFrom<Flags>(...flagSets),
      trouble,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("resume" as const), run: any, trouble }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("redo" as const), row: any, trouble }) },
  { weight: 1, arbitrary: deed("retry") },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("resolve" as const),
      how: fc.constantFrom("--skip" as const, "--resubmit" as const, "--refetch" as const),
    }),
  },
  { weight: 1, arbitrary: deed("cancel") },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("save plan" as const), sheet: any }) },
  { weight: 1, arbitrary: deed("run plan") },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("lose file" as const), file: any }) },
  { weight: 1, arbitrary: deed("lose state") },
  { weight: 1, arbitrary: deed("move") },
  { weight: 1, arbitrary: deed("back up") },
  { weight: 1, arbitrary: deed("restore") },
  { weight: 1, arbitrary: deed("rebuild") },
);

export const stories = fc.array(deeds, { minLength: 4, maxLength: 24, size: "max" });

export function told(story: readonly Deed[]): string {
  return story.map((each) => JSON.stringify(each)).join("\n");
}
