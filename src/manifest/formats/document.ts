import { isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, type Node, parseDocument } from "yaml";
import type { Problem } from "../../core/problem.js";
import type { Mark } from "../shape/manifest.js";
import { slipIn } from "./yaml-slips.js";

/** A value of the file. Numbers and booleans are texts as written, so `5` and `"5"` are the same. */
export type Plain = string | null | Plain[] | { [key: string]: Plain };

/** A parsed file with the place of each value. */
export interface Document {
  file: string;
  plain: Plain;
  /** Where the value at a path begins; if it is missing, where the nearest enclosing value begins. */
  markAt(path: readonly PropertyKey[]): Mark;
}

export type Language = "JSON" | "YAML";

export function isObject(value: Plain | undefined): value is { [key: string]: Plain } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The largest document: a tree with the place of every value is many times the file's size. */
const charactersMax = 16_000_000;

/**
 * Parses JSON or YAML. JSON, a subset of YAML, is read by the YAML parser, which knows the place of each value; so comments
 * and trailing commas are accepted too. `line` is the line of the file on which the text begins.
 */
export function parsed(
  file: string,
  text: string,
  language: Language,
  line = 1,
): Document | { problem: Problem } {
  const lines = new LineCounter();
  const markOf = (offset: number): Mark => {
    // Before the text is parsed, no line is known.
    const at = lines.linePos(offset);
    return { line: Math.max(1, at.line) + line - 1, lineColumn: Math.max(1, at.col) };
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
  if (isTooDeep(text)) return fail(tooDeep, 0);
  try {
    const schema = language === "JSON" ? "json" : "core";
    const document = parseDocument(text, { schema, lineCounter: lines, logLevel: "error" });
    const error = document.errors[0];
    if (error) return fail(slipIn(error.message, text, error.pos[0]), error.pos[0]);
    const contents = document.contents;
    const plain = new Reading(text, language).plainOf(contents);
    return { file, plain, markAt: (path) => markOf(nodeAt(contents, path)?.range?.[0] ?? 0) };
  } catch (error) {
    if (error instanceof NotPlain) return fail(error.message, error.offset);
    throw error;
  }
}

const tooDeep = "values nested hundreds deep";
const depthMax = 200;

/**
 * Whether values nest deeper than any manifest needs. The parser recurses into them, and when the stack overflows, Node
 * may abort instead of throwing an error. So the lexer, which does not recurse, looks first.
 */
function isTooDeep(text: string): boolean {
  let brackets = 0;
  /** Items of lists that begin within this line, such as `- - - a`. */
  let items = 0;
  let previous = "\n";
  for (const lexeme of new Lexer().lex(text)) {
    const isText = previous === startOfText;
    const isIndent = previous.endsWith("\n") && /^ +$/.test(lexeme);
    if (!isText && (lexeme === "[" || lexeme === "{")) brackets++;
    if (!isText && (lexeme === "]" || lexeme === "}")) brackets--;
    if (!isText && (lexeme === "-" || lexeme === "?")) items++;
    if (lexeme.endsWith("\n")) items = 0;
    if (Math.max(brackets, items) > depthMax || (isIndent && lexeme.length > 4 * depthMax)) return true;
    previous = lexeme;
  }
  return false;
}

/** What the lexer puts before a text that has no quotes. */
const startOfText = "\x1f";

function tooLong(file: string, text: string, language: Language): Problem {
  return {
    place: { file, row: null },
    message: `the file is too large for ${language}`,
    expected: `at most ${charactersMax / 1_000_000} million characters; CSV and JSON Lines (.jsonl) may be larger`,
    got: `${Math.round(text.length / 1_000_000)} million`,
  };
}

/** Features of YAML that a manifest must not use, because they change text or may never end. */
class NotPlain extends Error {
  override readonly name = "NotPlain";
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** The most values that all aliases together may repeat: a few lines of nested aliases can mean billions. */
const repeatedMax = 100_000;

class Reading {
  private repeated = 0;
  /** The latest node of each name: an alias means the last anchor before it. */
  private readonly anchors = new Map<string, unknown>();

  constructor(
    private readonly text: string,
    private readonly language: Language,
  ) {}

  /** `within` are the nodes that aliases led to, from the outermost to this one. */
  plainOf(node: unknown, within: readonly unknown[] = []): Plain {
    if (node === null || node === undefined) return null;
    const [start, end] = (node as Node).range ?? [0, 0];
    if (isAlias(node)) return this.aliased(node.source, start, within);
    if (within.length > 0 && ++this.repeated > repeatedMax) {
      throw new NotPlain(`aliases that repeat more than ${repeatedMax} values`, start);
    }
    const { anchor, tag = "" } = node as { anchor?: string; tag?: string };
    // YAML would read `!red cup` as `cup`.
    if (tag.startsWith("!"))
      throw new NotPlain(`a text that begins with ${tag}, which needs quotes around it`, start);
    if (anchor !== undefined && within.length === 0) this.anchors.set(anchor, node);
    if (isSeq(node)) return node.items.map((item) => this.plainOf(item, within));
    if (isMap(node)) {
      const own: [string, Plain][] = [];
      const merged: [string, Plain][] = [];
      for (const pair of node.items) {
        if (isAlias(pair.key)) throw new NotPlain("an alias (*name) as the name of a field", start);
        const key = isScalar(pair.key) ? this.scalarText(pair.key) : "";
        const value = this.plainOf(pair.value, within);
        if (this.language === "YAML" && key === "<<" && isObject(value))
          merged.push(...Object.entries(value));
        else own.push([key ?? "", value]);
      }
      // A mapping's own keys win over merged ones, wherever the merge is written.
      return Object.fromEntries([...merged, ...own]);
    }
    if (!isScalar(node)) throw new NotPlain("something that is no value", start);
    // A JSON string has no line breaks. YAML would fold one into a space and change the prompt.
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
    if (!meant) throw new NotPlain("an alias (*name) without an anchor", start);
    if (within.includes(meant)) throw new NotPlain("an alias (*name) that contains itself", start);
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
