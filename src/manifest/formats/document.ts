import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { Problem } from "../../core/problem.js";
import type { Mark } from "../shape/manifest.js";

/** A value of the file with every number, true and false as it is written there; `5` and `"5"` are the same. */
export type Plain = string | null | Plain[] | { [key: string]: Plain };

/** A parsed file that can tell where each of its values lies. */
export interface Document {
  file: string;
  plain: Plain;
  /** Where the value at a path begins; where it is missing, where the nearest one around it begins. */
  markAt(path: readonly PropertyKey[]): Mark;
}

export type Language = "JSON" | "YAML";

export function isObject(value: Plain | undefined): value is { [key: string]: Plain } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A tree with the place of every value is many times the file's size. */
const charactersMax = 16_000_000;

/**
 * Parses JSON or YAML. JSON is read by the YAML parser, of which it is a subset, because that one knows where each value
 * stands; it thereby also takes comments and a comma too many. `line` is the line of the file on which the text begins.
 */
export function parsed(
  file: string,
  text: string,
  language: Language,
  line = 1,
): Document | { problem: Problem } {
  const lines = new LineCounter();
  const markOf = (offset: number): Mark => {
    const at = lines.linePos(offset);
    return { line: at.line + line - 1, lineColumn: at.col };
  };
  const fail = (got: string, offset: number) => ({
    problem: {
      place: { file, row: null, ...markOf(offset) },
      message: `the file is not valid ${language}`,
      expected: `${language}: an array of rows, or an object with rows`,
      got,
    },
  });
  if (text.length > charactersMax) return { problem: tooLong(file, text, language) };
  try {
    const schema = language === "JSON" ? "json" : "core";
    const document = parseDocument(text, { schema, lineCounter: lines, logLevel: "error" });
    const error = document.errors[0];
    // How deep the parser gets before it gives up is the machine's affair, and no place in the file.
    if (error?.message.includes("call stack")) return fail(tooDeep, 0);
    if (error) return fail(plainWords(error.message), error.pos[0]);
    const contents = document.contents;
    const plain = new Reading(text, language).plainOf(contents);
    return { file, plain, markAt: (path) => markOf(nodeAt(contents, path)?.range?.[0] ?? 0) };
  } catch (error) {
    if (error instanceof NotPlain) return fail(error.message, error.offset);
    if (error instanceof RangeError) return fail(tooDeep, 0);
    throw error;
  }
}

const tooDeep = "values nested thousands deep";

function tooLong(file: string, text: string, language: Language): Problem {
  return {
    place: { file, row: null },
    message: `the file is too large for ${language}`,
    expected: `at most ${charactersMax / 1_000_000} million characters; CSV and JSON Lines (.jsonl) may be larger`,
    got: `${Math.round(text.length / 1_000_000)} million`,
  };
}

/** What YAML allows and a manifest does not, because reading it would change the text or has no end. */
class NotPlain extends Error {
  override readonly name = "NotPlain";
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** Values that aliases may repeat, all together: a few lines of nested aliases can stand for billions. */
const repeatedMax = 100_000;

class Reading {
  private repeated = 0;
  /** The newest node of each name: an alias means the last one before it. */
  private readonly anchors = new Map<string, unknown>();

  constructor(
    private readonly text: string,
    private readonly language: Language,
  ) {}

  /** `within` holds the nodes that aliases led to, from the outermost to here. */
  plainOf(node: unknown, within: readonly unknown[] = []): Plain {
    if (node === null || node === undefined) return null;
    const [start, end] = (node as Node).range ?? [0, 0];
    if (isAlias(node)) return this.aliased(node.source, start, within);
    if (within.length > 0 && ++this.repeated > repeatedMax) {
      throw new NotPlain(`aliases that repeat more than ${repeatedMax} values`, start);
    }
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined && within.length === 0) this.anchors.set(anchor, node);
    if (isSeq(node)) return node.items.map((item) => this.plainOf(item, within));
    if (isMap(node)) {
      return Object.fromEntries(
        node.items.flatMap((pair): [string, Plain][] => {
          const key = isScalar(pair.key) ? this.scalarText(pair.key) : "";
          const value = this.plainOf(pair.value, within);
          return this.language === "YAML" && key === "<<" && isObject(value)
            ? Object.entries(value)
            : [[key ?? "", value]];
        }),
      );
    }
    if (!isScalar(node)) throw new NotPlain("something that is no value", start);
    // JSON's strings hold no line breaks; YAML would fold one into a space, and so send another prompt than was written.
    if (
      this.language === "JSON" &&
      typeof node.value === "string" &&
      this.text.slice(start, end).includes("\n")
    ) {
      throw new NotPlain("a text with a line break in it; write the break as \\n", start);
    }
    return this.scalarText(node);
  }

  private aliased(name: string, start: number, within: readonly unknown[]): Plain {
    if (this.language === "JSON") throw new NotPlain("an alias (*name)", start);
    const meant = this.anchors.get(name);
    if (!meant) throw new NotPlain("an alias (*name) of nothing", start);
    if (within.includes(meant)) throw new NotPlain("an alias (*name) that holds itself", start);
    return this.plainOf(meant, [...within, meant]);
  }

  private scalarText(node: { value: unknown; source?: string }): string | null {
    if (node.value === null || node.value === undefined) return null;
    return typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
  }
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
    .replace(/Flow map/, "the object")
    .replace(/in block collection must be sufficiently indented and end with a/, "does not end with a");
}
