import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { Problem } from "../core/problem.js";
import type { Mark } from "./manifest.js";

/** A value of the file with every number, true and false as it is written there; `5` and `"5"` are the same. */
export type Plain = string | null | Plain[] | { [key: string]: Plain };

/** A parsed file that can tell where each of its values lies. */
export interface JsonDocument {
  file: string;
  plain: Plain;
  /** Where the value at a path begins; where it is missing, where the nearest one around it begins. */
  markAt(path: readonly PropertyKey[]): Mark;
}

export function isObject(value: Plain | undefined): value is { [key: string]: Plain } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function parseJson(file: string, text: string): JsonDocument | { problem: Problem } {
  const lines = new LineCounter();
  const document = parseDocument(text, { schema: "json", lineCounter: lines });
  const markOf = (offset: number): Mark => {
    const { line, col } = lines.linePos(offset);
    return { line, lineColumn: col };
  };
  const fail = (message: string, offset: number) => ({
    problem: {
      place: { file, row: null, ...markOf(offset) },
      message: "the file is not valid JSON",
      expected: "JSON: an array of rows, or an object with rows",
      got: message,
    },
  });
  const error = document.errors[0];
  if (error) return fail(plainWords(error.message), error.pos[0]);
  try {
    const contents = document.contents;
    const plain = plainOf(contents, text);
    return { file, plain, markAt: (path) => markOf(nodeAt(contents, path)?.range?.[0] ?? 0) };
  } catch (error) {
    if (error instanceof NotJson) return fail(error.message, error.offset);
    throw error;
  }
}

/** What YAML allows and JSON does not, where reading it would change the text. */
class NotJson extends Error {
  override readonly name = "NotJson";
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

function plainOf(node: unknown, text: string): Plain {
  if (node === null || node === undefined) return null;
  if (isSeq(node)) return node.items.map((item) => plainOf(item, text));
  if (isMap(node)) {
    return Object.fromEntries(
      node.items.map((pair) => [String(isScalar(pair.key) ? pair.key.value : ""), plainOf(pair.value, text)]),
    );
  }
  const [start, end] = (node as Node).range ?? [0, 0];
  if (!isScalar(node)) throw new NotJson("an alias (*name)", start);
  // YAML would fold the line break into a space, and so send another prompt than the one written.
  if (typeof node.value === "string" && text.slice(start, end).includes("\n")) {
    throw new NotJson("a text with a line break in it; write the break as \\n", start);
  }
  if (node.value === null) return null;
  return typeof node.value === "number" ? (node.source ?? String(node.value)) : String(node.value);
}

function nodeAt(top: Node | null, path: readonly PropertyKey[]): Node | null {
  let found = top;
  for (const step of path) {
    if (!isMap(found) && !isSeq(found)) break;
    const next = found.get(typeof step === "symbol" ? String(step) : step, true);
    if (!next) break;
    found = next as Node;
  }
  return found;
}

function plainWords(message: string): string {
  return message
    .replace(/ at line \d+, column \d+:[\s\S]*$/, "")
    .replace(/^Unresolved plain scalar/, "text without quotes:")
    .replace(/Flow sequence/, "the array")
    .replace(/Flow map/, "the object");
}
