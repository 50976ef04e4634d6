import fc from "fast-check";

/**
 * What one person does with some sheets, one thing after the other. Numbers choose among what is there when it is done,
 * so that a part of a story is a story too.
 */
export type Deed =
  | { do: "edit"; sheet: number; how: Edit; row: number; other: number }
  | { do: "file"; sheet: number; how: "rename" | "copy" | "delete"; name: number }
  | { do: "run"; sheet: number; flags: Flags; trouble: Trouble }
  | { do: "resume"; run: number; flags: ResumeFlags; trouble: Trouble }
  | { do: "redo"; row: number; trouble: Trouble }
  | { do: "approve" | "reject" | "reject again"; which: Which }
  | { do: "review"; command: Reviewing; decisions: { which: Which; decision: Decision }[] }
  | { do: "retry" }
  | { do: "resolve"; how: "--skip" | "--resubmit" | "--refetch" }
  | { do: "adopt task"; task: number; row: number }
  | { do: "adopt files"; sheet: number }
  | { do: "redo some" | "retry some"; flags: Selecting }
  | { do: "cancel" }
  | { do: "save plan"; sheet: number }
  | { do: "run plan" }
  | { do: "harm file"; file: number; how: Harm }
  | { do: "verify"; flags: VerifyFlags }
  | { do: "lose state" }
  | { do: "move" }
  | { do: "go to another machine" }
  | { do: "use address"; address: Address }
  | { do: "go to the other folder" }
  | { do: "fetch a sheet"; sheet: number; how: "copy" | "move" }
  | { do: "lose shared state" }
  | { do: "use key"; key: Key }
  | { do: "catalogue"; how: Catalogue }
  | { do: "wait"; time: Time }
  | { do: "migrate" }
  | { do: "back up" }
  | { do: "restore"; what: Restored }
  | { do: "rebuild" };

export type Edit =
  | "add"
  | "add with a photo"
  | "move photos"
  | "tidy photos away, or put them back"
  | "build on"
  | "remove"
  | "reword"
  | "swap ids"
  | "rename id"
  | "reverse"
  | "repeat"
  | "ask for approval, or not"
  | "ask for two sizes, or one"
  | "name files, or not";

/** A row, or the second variant of it; null: all that wait. */
export type Which = { row: number; variant: 1 | 2 } | null;
export type Decision = "approve" | "pick" | "reject" | "redo";
export const reviewing = [["approve"], ["reject"], ["reject", "--again"], ["redo"], ["pick"]] as const;
export type Reviewing = (typeof reviewing)[number];

export type Harm = "lose" | "truncate" | "change a byte of";

/**
 * What a copy brings back: the state of a folder, or that of the machine, which all folders share, or both of them with
 * the outputs.
 */
export type Restored = "state" | "shared state" | "everything";

/** The service has two addresses. */
export type Address = "127.0.0.1" | "localhost";

/** Of one person, or of another one. */
export type Key = "first" | "second" | "another user's";

/**
 * What the service offers from now on: the usual models, or one less, or the cheap one at a higher list price or with a
 * param that the other one always has, and that all commands name.
 */
export const catalogues = [
  "usual",
  "without the cheap model",
  "without the editor",
  "dearer",
  "with a mood",
] as const;
export type Catalogue = (typeof catalogues)[number];

/** How long nothing is done (ms). The service keeps files for a week, and tasks for a month. */
export const times = { "20 minutes": minutes(20), "a day": days(1), "5 days": days(5), "3 weeks": days(21) };
export type Time = keyof typeof times;

/**
 * What happens during a command, at its nth paid request: somebody presses Ctrl-C, or gives an order, or the answer is
 * lost, or the request, or the task takes days, or it fails. Or the process is killed, there or at its nth poll.
 */
export interface Trouble {
  kind: "none" | "interrupt" | "unanswered" | "unsent" | "slow" | "fails" | Kill | Order;
  nth: number;
}

/** The request at which the process is killed. */
export const kills = {
  "killed before it pays": "POST generate",
  "killed after it has paid": "POST generate",
  "killed while it waits": "GET task",
} as const;
export type Kill = keyof typeof kills;

export const orders = {
  "pause meanwhile": ["pause"],
  "cancel meanwhile": ["cancel"],
  "approve meanwhile": ["approve", "--all"],
  "redo meanwhile": ["redo", "r0", "--yes"],
  "retry meanwhile": ["retry", "--yes"],
  "verify meanwhile": ["verify", "--repair"],
  "resume meanwhile": ["resume", "--if-locked", "wait"],
} as const;
/** A second run, of the first sheet, in the same folder or in the other one. */
export const secondRuns = {
  "run too": ["--if-locked", "fail"],
  "run then": ["--if-locked", "wait"],
  "run or not": ["--if-locked", "skip"],
  "run there": [],
} as const;
export type SecondRun = keyof typeof secondRuns;
type Order = keyof typeof orders | SecondRun;

/** Stands for a place of the folder's own in a bucket. */
export const bucket = "s3://inputs";

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
  ["--max-credits-per-model", "atelier-edit=6"],
  ["--missing", "fetch"],
  ["--missing", "pay"],
  ["--retries", "0"],
  ["--out", "elsewhere"],
  ["--filter", "prompt=picture 1*"],
  ["--filter", "model=atelier-edit"],
  ["--sample", "2"],
  ["--order", "cheapest"],
  ["--order", "priority"],
  ["--canary"],
  ["--max-price", "3"],
  ["--rpd", "9"],
  ["--max-credits-per-day", "3"],
  ["--archive", bucket],
  ["--archive", bucket, "--archive-only"],
  ["--settle", "wait"],
  ["--settle", "wait", "--orphans", "resubmit", "--orphan-credits", "7"],
] as const;
export type Flags = (typeof flagSets)[number];

export const resumeFlagSets = [
  [],
  [],
  ["--max-credits", "3"],
  ["--max-credits-per-model", "atelier-edit=12"],
] as const;
export type ResumeFlags = (typeof resumeFlagSets)[number];

export const verifyFlagSets = [
  [],
  ["--read-data"],
  ["--repair"],
  ["--read-data", "--repair"],
  ["--read-data", "--repair", "--clean", "--yes"],
] as const;
export type VerifyFlags = (typeof verifyFlagSets)[number];

export const selecting = [
  ["--filter", "prompt=picture 1*"],
  ["--filter", "model=atelier-edit"],
  ["--first", "1"],
  ["--range", "2:3"],
  ["--only-failed"],
] as const;
export type Selecting = (typeof selecting)[number];

const any = fc.nat(59);
const trouble: fc.Arbitrary<Trouble> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Trouble>({ kind: "none", nth: 0 }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom<Trouble["kind"]>(
        "interrupt",
        "interrupt",
        "unanswered",
        "unsent",
        "slow",
        "fails",
        ...(Object.keys(kills) as Kill[]),
      ),
      nth: fc.nat(3),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom<Trouble["kind"]>(...(Object.keys({ ...orders, ...secondRuns }) as Order[])),
      nth: fc.nat(3),
    }),
  },
);
const which = fc.record({ row: any, variant: fc.constantFrom(1 as const, 1 as const, 2 as const) });
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
        "add with a photo",
        "add with a photo",
        "move photos",
        "move photos",
        "tidy photos away, or put them back",
        "build on",
        "build on",
        "remove",
        "reword",
        "swap ids",
        "rename id",
        "reverse",
        "repeat",
        "ask for approval, or not",
        "ask for approval, or not",
        "ask for two sizes, or one",
        "ask for two sizes, or one",
        "name files, or not",
        "name files, or not",
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
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("resume" as const),
      run: any,
      flags: fc.constantFrom<ResumeFlags>(...resumeFlagSets),
      trouble,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("redo" as const), row: any, trouble }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("approve" as const, "approve" as const, "reject" as const),
      which: fc.option(which),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reject again" as const), which }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("review" as const),
      command: fc.constantFrom<Reviewing>(...reviewing),
      decisions: fc.array(
        fc.record({ which, decision: fc.constantFrom<Decision>("approve", "pick", "reject", "redo") }),
        { minLength: 1, maxLength: 4 },
      ),
    }),
  },
  { weight: 1, arbitrary: deed("retry") },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("resolve" as const),
      how: fc.constantFrom("--skip" as const, "--resubmit" as const, "--refetch" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("adopt task" as const), task: any, row: any }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("adopt files" as const), sheet: any }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom("redo some" as const, "retry some" as const),
      flags: fc.constantFrom<Selecting>(...selecting),
    }),
  },
  { weight: 1, arbitrary: deed("cancel") },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("save plan" as const), sheet: any }) },
  { weight: 1, arbitrary: deed("run plan") },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("harm file" as const),
      file: any,
      how: fc.constantFrom<Harm>("lose", "lose", "truncate", "change a byte of"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("verify" as const),
      flags: fc.constantFrom<VerifyFlags>(...verifyFlagSets),
    }),
  },
  { weight: 1, arbitrary: deed("lose state") },
  { weight: 2, arbitrary: deed("move") },
  { weight: 1, arbitrary: deed("go to another machine") },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("use address" as const),
      address: fc.constantFrom<Address>("127.0.0.1", "localhost"),
    }),
  },
  { weight: 3, arbitrary: deed("go to the other folder") },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("fetch a sheet" as const),
      sheet: any,
      how: fc.constantFrom("copy" as const, "move" as const),
    }),
  },
  { weight: 1, arbitrary: deed("lose shared state") },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("use key" as const),
      key: fc.constantFrom<Key>("first", "first", "second", "another user's"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      time: fc.constantFrom(...(Object.keys(times) as Time[])),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("catalogue" as const),
      how: fc.constantFrom<Catalogue>("usual", ...catalogues),
    }),
  },
  { weight: 2, arbitrary: deed("back up") },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("restore" as const),
      what: fc.constantFrom<Restored>("state", "shared state", "everything"),
    }),
  },
  { weight: 1, arbitrary: deed("rebuild") },
);

export const stories = storiesOf(deeds);

/** With the state in a database from time to time. */
export const migratingStories = storiesOf(
  fc.oneof({ weight: 6, arbitrary: deeds }, { weight: 1, arbitrary: deed("migrate") }),
);

function storiesOf(each: fc.Arbitrary<Deed>): fc.Arbitrary<Deed[]> {
  return fc.array(each, { minLength: 4, maxLength: 24, size: "max" });
}

function minutes(number: number): number {
  return number * 60_000;
}

export function days(number: number): number {
  return minutes(number * 24 * 60);
}

export function told(story: readonly Deed[]): string {
  return story.map((each) => JSON.stringify(each)).join("\n");
}
