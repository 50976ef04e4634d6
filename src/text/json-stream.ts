import { jsonText } from "./terminal.js";

/**
 * Writes an object as JSON in pieces, so that its lists may exceed the length of a string. Values that are iterable but not
 * arrays are written one by one, all on one line or one a line.
 */
export function* jsonPieces(object: object, lineEnd: "" | "\n" = ""): Generator<string> {
  let before = "{";
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    yield `${before}${jsonText(key)}:`;
    before = ",";
    if (isListed(value)) yield* listPieces(value, lineEnd);
    else yield jsonText(value);
  }
  yield before === "{" ? "{}\n" : "}\n";
}

function isListed(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Symbol.iterator in value;
}

const charactersAtOnce = 65_536;

function* listPieces(things: Iterable<unknown>, lineEnd: string): Generator<string> {
  let text = "[";
  let before = lineEnd;
  for (const thing of things) {
    text += before + jsonText(thing);
    before = `,${lineEnd}`;
    if (text.length < charactersAtOnce) continue;
    yield text;
    text = "";
  }
  yield `${text}${before === lineEnd ? "" : lineEnd}]`;
}
