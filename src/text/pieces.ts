import { createHash } from "node:crypto";
import { jsonText } from "./terminal.js";

/** What may be longer than a string, or than memory: it is read, written and hashed in pieces. */

const newline = 0x0a;

/** Splits a text into its lines while it comes in pieces: a whole file may be longer than a string can be. */
export class LineSplitter {
  /** The beginning of a line whose end has not come. */
  private begun: Uint8Array[] = [];

  /** The lines that end in this piece, without their ends. */
  take(piece: Uint8Array): string[] {
    const end = piece.lastIndexOf(newline);
    if (end < 0) {
      this.begun.push(copyOf(piece));
      return [];
    }
    const whole = Buffer.concat([...this.begun, piece.subarray(0, end)]);
    this.begun = end + 1 < piece.length ? [copyOf(piece.subarray(end + 1))] : [];
    return whole.toString("utf8").split("\n");
  }

  /** The last line, if it has no end; else the empty text. */
  last(): string {
    return Buffer.concat(this.begun).toString("utf8");
  }
}

/** Whoever reads a file may fill the same piece again. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

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

/** All of a content that memory does hold. */
export async function wholeOf(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

/** The SHA-256 of a content, in hex. */
export async function sha256Of(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of pieces) hash.update(piece);
  return hash.digest("hex");
}
