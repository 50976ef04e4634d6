import { Liquid, type Template as Parsed } from "liquidjs";
import { nearest } from "../core/nearest.js";
import { type Fault, TemplateFault } from "./fault.js";
import { filterNames, useFilters } from "./filters.js";

/** The names that a template may use: columns, variables, and the keys below `params`. */
export interface Names {
  top: ReadonlySet<string>;
  params: ReadonlySet<string>;
  /** Other names of columns, by column. */
  aliases: ReadonlyMap<string, readonly string[]>;
}

/** What a rendering sees. Values may be getters: they are asked for when a template names them. */
export type Scope = Record<string, unknown>;

export type Template = (scope: Scope) => string;

/** Whether a text holds a template at all; one that does not is never touched. */
export function isTemplate(text: string): boolean {
  return text.includes("{{") || text.includes("{%");
}

/** Rendering more than this is a slip, such as a text that is joined to itself again and again. */
const renderedCharactersMax = 1_000_000;
const keptMax = 1_000;
/** No loops, no files: each rendering ends soon, whatever a manifest holds. */
const tagNames = ["assign", "capture", "case", "comment", "echo", "if", "raw", "unless", "#"];

/** Compiles the templates of one manifest, and remembers which names they use. */
export class Templates {
  readonly used = new Set<string>();
  private readonly engine: Liquid;
  private readonly kept = new Map<string, Template | Fault>();

  constructor(private readonly names: Names) {
    this.engine = new Liquid({
      strictVariables: true,
      strictFilters: true,
      ownPropertyOnly: true,
      memoryLimit: renderedCharactersMax,
      timezoneOffset: 0,
      locale: "en-US",
      relativeReference: false,
      fs: noFiles,
    });
    useFilters(this.engine, this.used);
    for (const tag of Object.keys(this.engine.tags))
      if (!tagNames.includes(tag)) delete this.engine.tags[tag];
  }

  /** The template, or why there is none: its grammar, or a name that nothing has, which is wrong for every row. */
  compile(text: string): Template | Fault {
    let made = this.kept.get(text);
    if (made === undefined) {
      // Rows may each bring a text of their own.
      if (this.kept.size >= keptMax) this.kept.clear();
      made = this.made(text);
      this.kept.set(text, made);
    }
    return made;
  }

  private made(text: string): Template | Fault {
    try {
      const parsed = this.engine.parse(withNestedNames(text));
      const unknown = this.unknownName(parsed);
      return unknown ?? ((scope) => this.render(parsed, scope));
    } catch (error) {
      return this.faultOf(error);
    }
  }

  private unknownName(parsed: Parsed[]): Fault | null {
    for (const [root, key] of this.engine.globalVariableSegmentsSync(parsed)) {
      const name = String(root);
      this.used.add(name);
      if (!this.names.top.has(name)) return noName(name, this.names.top);
      if (name !== "params" || typeof key !== "string") continue;
      this.used.add(`params.${key}`);
      if (!this.names.params.has(key)) return noName(`params.${key}`, paramNames(this.names));
    }
    return null;
  }

  private render(parsed: Parsed[], scope: Scope): string {
    try {
      return String(this.engine.renderSync(parsed, scope));
    } catch (error) {
      throw new TemplateFault(this.faultOf(error));
    }
  }

  private faultOf(error: unknown): Fault {
    const inner = innermost(error);
    if (inner instanceof TemplateFault) return inner.fault;
    const { message } = inner as Error;
    const [, undefinedName] = /^undefined variable: (.*?)(?:, line:\d+, col:\d+)?$/.exec(message) ?? [];
    if (undefinedName !== undefined) return noName(undefinedName, this.names.top);
    const [, filter] = /^undefined filter: (\S+?)(?:,|$)/.exec(message) ?? [];
    if (filter !== undefined) return unknownWord("filter", filter, filterNames);
    const [, tag] = /^tag "(.*)" not found/.exec(message) ?? [];
    if (tag !== undefined) return unknownWord("tag", tag, tagNames);
    if (message.startsWith("memory alloc limit")) return tooLarge;
    return {
      message: "the template cannot be rendered",
      expected: "Liquid such as {{ name }}, {{ name | slug }} or {% if name %}…{% endif %}",
      got: message.replace(/, line:(\d+), col:(\d+)$/, " at $1:$2 of the text"),
    };
  }
}

/** Templates read no files; `@file.txt` does, and only in the manifest's folder. */
const noFiles = {
  readFileSync: () => "",
  readFile: async () => "",
  existsSync: () => false,
  exists: async () => false,
  contains: async () => false,
  containsSync: () => false,
  resolve: () => "",
};

const tooLarge: Fault = {
  message: "the template makes too large a text",
  expected: `at most ${renderedCharactersMax} characters`,
  got: "more",
};

/** The first cause: the engine wraps what a filter or a value throws. */
function innermost(error: unknown): unknown {
  const { originalError } = error as { originalError?: unknown };
  return originalError === undefined ? error : innermost(originalError);
}

const listedMax = 12;

function noName(name: string, names: Iterable<string>): Fault {
  const all = [...names];
  const near = nearest(name, all);
  const listed = all.slice(0, listedMax).join(", ");
  return {
    message: `the template names "${name}", which is no column and no variable`,
    expected:
      all.length <= listedMax ? `one of: ${listed}` : `one of: ${listed} and ${all.length - listedMax} more`,
    got: name,
    ...(near === undefined ? {} : { nearest: near }),
  };
}

function paramNames({ params }: Names): string[] {
  return [...params].map((key) => `params.${key}`);
}

function unknownWord(kind: "filter" | "tag", word: string, known: readonly string[]): Fault {
  const near = nearest(word, known);
  return {
    message: `there is no ${kind} "${word}" for templates`,
    expected: `one of: ${known.join(", ")}`,
    got: word,
    ...(near === undefined ? {} : { nearest: near }),
  };
}

const nested = /\{\{(-?)\s*([\w.-]*(?:\{\{\s*\w+\s*\}\}[\w.-]*)+)\s*((?:\|[^{}]*?)?)(-?)\}\}/g;

/** `{{ prompt_{{lang}} }}` means the column whose name ends with the value of `lang`; Liquid itself has no such thing. */
function withNestedNames(text: string): string {
  return text.replace(nested, (_all, open: string, name: string, filters: string, close: string) => {
    const pieces = name.split(/\{\{\s*(\w+)\s*\}\}/);
    const joined = pieces.map((piece, index) =>
      index % 2 === 0 ? `append: "${piece}"` : `append: ${piece}`,
    );
    return `{{${open} "" | ${joined.join(" | ")} | column ${filters}${close}}}`;
  });
}
