import fc from "fast-check";

/** Something that reads what others wrote, and the rules for what it makes of that. */
export interface Parser {
  /** Good inputs. Cases are these with parts changed, lost and added. */
  samples(): readonly Buffer[] | Promise<readonly Buffer[]>;
  /** Pieces of the language, which cases put together in any order; none where that leads nowhere. */
  words: readonly string[];
  /** The samples are JSON documents, or lines of them: cases change their values too. */
  isJson?: boolean;
  /** How many cases `npm run fuzz` tries without minutes. */
  cases?: number;
  /** Throws when a rule is broken. Whether the input was taken, or refused in the way that is promised. */
  read(bytes: Buffer): Outcome | Promise<Outcome>;
}

export type Outcome = "taken" | "refused";

/** Inputs for a parser, which shrink to small ones. */
export async function casesOf({ samples, words, isJson = false }: Parser): Promise<fc.Arbitrary<Buffer>> {
  const good = await samples();
  const kinds = [changed(good, words), spliced(good), overwritten(good)];
  if (words.length > 0) kinds.push(pieces(words));
  if (isJson) kinds.push(changedValues(good), changedValues(good));
  return fc.oneof(...kinds);
}

/** A place in a sample, whatever its length. Of itself fast-check would choose the first and the last ones most often. */
const anywhere = fc.noBias(fc.nat(2 ** 24));

function pieces(words: readonly string[]): fc.Arbitrary<Buffer> {
  return fc.array(fc.constantFrom(...words), { maxLength: 40 }).map((some) => Buffer.from(some.join("")));
}

function changed(samples: readonly Buffer[], words: readonly string[]): fc.Arbitrary<Buffer> {
  const bytes = fc.uint8Array({ maxLength: 4 }).map((some) => Buffer.from(some));
  const added = words.length === 0 ? bytes : fc.oneof(bytes, fc.constantFrom(...words).map(Buffer.from));
  const change = fc.record({ at: anywhere, lose: fc.nat(6), add: added });
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([sample, changes]) =>
      changes.reduce((now, { at, lose, add }) => {
        const place = at % (now.length + 1);
        return Buffer.concat([now.subarray(0, place), add, now.subarray(place + lose)]);
      }, sample),
    );
}

/** Other bytes in the same places: what stands after them is still found. */
function overwritten(samples: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const change = fc.record({ at: anywhere, bytes: fc.uint8Array({ minLength: 1, maxLength: 4 }) });
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([sample, changes]) => {
      const copy = Buffer.from(sample);
      for (const { at, bytes } of changes)
        copy.set(bytes.subarray(0, copy.length), at % Math.max(1, copy.length - bytes.length + 1));
      return copy;
    });
}

/** The beginning of one and the end of another; also a sample that is cut short. */
function spliced(samples: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const any = fc.constantFrom(...samples, Buffer.alloc(0));

  return fc
    .tuple(any, anywhere, any, anywhere)
    .map(([one, end, other, from]) =>
      Buffer.concat([one.subarray(0, end % (one.length + 1)), other.subarray(from % (other.length + 1))]),
    );
}

const oddValues: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  -0.1 - 0.2,
  2 ** 53,
  "",
  " ",
  "x",
  "5",
  "null",
  "__proto__",
  "constructor",
  "../../x",
  "/etc/passwd",
  "\u0000",
  "\u001b[31m",
  "\ud800",
  "2026-13-45T99:99:99Z",
  "+275760-09-13T00:00:00.001Z",
  "https://127.0.0.1/x",
  "y".repeat(3_000),
  [],
  {},
  [[]],
  [null],
  { __proto__: null, toString: 1 },
];

/** A JSON document, or one of its lines, with some of its values replaced, left out or named otherwise. */
function changedValues(samples: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const change = fc.record({
    at: anywhere,
    how: fc.constantFrom("replace", "replace", "replace", "remove", "rename", "repeat"),
    value: fc.constantFrom(...oddValues),
  });
  return fc
    .tuple(fc.constantFrom(...samples), anywhere, fc.array(change, { minLength: 1, maxLength: 3 }))
    .map(([sample, at, changes]) => {
      const lines = sample.toString("utf8").trimEnd().split("\n");
      const isLines = lines.every((line) => isDocument(line));
      const texts = isLines ? lines : [sample.toString("utf8")];
      const which = at % texts.length;
      let document: unknown = { document: JSON.parse(texts[which] ?? "null") };
      for (const each of changes) document = withChange(document, each);
      texts[which] = JSON.stringify((document as { document?: unknown }).document ?? null);
      return Buffer.from(texts.join("\n") + (isLines ? "\n" : ""));
    });
}

function isDocument(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Change {
  at: number;
  how: string;
  value: unknown;
}

function withChange(document: unknown, { at, how, value }: Change): unknown {
  const copy: unknown = structuredClone(document);
  const places = placesIn(copy);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return copy;
  const [holder, key] = place;
  if (how === "remove") delete holder[key];
  else if (how === "rename") {
    holder[`${key}_`] = holder[key];
    delete holder[key];
  } else if (how === "repeat" && Array.isArray(holder)) holder.push(structuredClone(holder[Number(key)]));
  else holder[key] = value;
  return copy;
}

type Holder = Record<string, unknown>;

function placesIn(value: unknown): [Holder, string][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.keys(value).flatMap((key) => [
    [value as Holder, key] as [Holder, string],
    ...placesIn((value as Holder)[key]),
  ]);
}
