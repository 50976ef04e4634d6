import { filters as builtIn, type FilterImplOptions, Liquid, type Template as Parsed } from "liquidjs";
import { nearest } from "../../text/nearest.js";

/** What is wrong with a template, or with one rendering of it. */
export interface TemplateProblem {
  message: string;
  expected: string;
  got: string;
  nearest?: string;
}

/** Thrown by a rendering that cannot be done. */
export class TemplateFault extends Error {
  override readonly name = "TemplateFault";
  constructor(
    readonly fault: TemplateProblem,
    /** The text itself is wrong, whatever row it is rendered for. */
    readonly everywhere = false,
  ) {
    super(fault.message);
  }
}

/** Thrown where a template names what is known only when the service's models are. */
export class LateName extends Error {
  override readonly name = "LateName";
  constructor(readonly named: string) {
    super(`"${named}" is not known yet`);
  }

  /** What to tell where it will not be known later either. */
  get fault(): TemplateProblem {
    return {
      message: `the template names "${this.named}", which is known only when an item's file is named`,
      expected: "category and key in the field output alone",
      got: this.named,
    };
  }
}

/**
 * The filters of templates. From Liquid's own only those are taken whose result depends on nothing but the text: no
 * clock, no chance, no place on earth, because a prompt that changed by itself would be paid again.
 */
const taken = [
  "append",
  "prepend",
  "capitalize",
  "downcase",
  "upcase",
  "strip",
  "lstrip",
  "rstrip",
  "strip_newlines",
  "replace",
  "replace_first",
  "replace_last",
  "remove",
  "remove_first",
  "remove_last",
  "truncate",
  "truncatewords",
  "slice",
  "split",
  "join",
  "first",
  "last",
  "size",
  "default",
  "plus",
  "minus",
  "times",
  "divided_by",
  "modulo",
  "round",
  "ceil",
  "floor",
  "abs",
  "at_least",
  "at_most",
] as const;

export const filterNames: readonly string[] = [...taken, "slug", "pad", "date", "column"].toSorted();

/** Gives an engine these filters and takes all others from it; `used` learns which columns are looked up by name. */
export function useFilters(engine: Liquid, used: Set<string>): void {
  const own = { slug, pad, date: dateFilter(engine), column: columnFilter(used) } as Record<
    string,
    FilterImplOptions
  >;
  for (const name of Object.keys(engine.filters)) delete engine.filters[name];
  for (const name of taken) engine.registerFilter(name, builtIn[name] as FilterImplOptions);
  for (const [name, filter] of Object.entries(own)) engine.registerFilter(name, filter);
}

/** `Café crème, 2` becomes `cafe-creme-2`; letters of other scripts stay as they are. */
function slug(value: unknown): string {
  const plain = textOf(value)
    .replaceAll("ß", "ss")
    .replace(/[æœøłđð]/gi, (letter) => ligatures[letter.toLowerCase()] ?? letter);
  return plain
    .normalize("NFKD")
    .replace(/(?<=\p{Script=Latin})\p{M}+/gu, "")
    .normalize("NFC")
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "");
}

/** Letters that no decomposition takes apart. */
const ligatures: Readonly<Record<string, string>> = { æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d" };

const padMax = 100;

/** `7` becomes `007` with `pad: 3`. */
function pad(value: unknown, width: unknown): string {
  const wanted = Number(width);
  if (!Number.isInteger(wanted) || wanted < 1 || wanted > padMax) {
    const expected = `a width from 1 to ${padMax}, such as pad: 3`;
    throw new TemplateFault({ message: "pad has no width to use", expected, got: textOf(width) || "none" });
  }
  return textOf(value).padStart(wanted, "0");
}

const isoDate = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?Z?)?$/;

/** Liquid's own date filter, of dates in ISO's form and at the same place on earth for everybody. */
function dateFilter(engine: Liquid): (value: unknown, format: unknown) => string {
  const render = engine.filters["date"] as (this: unknown, value: unknown, format: unknown) => string;
  return function (this: unknown, value, format) {
    const text = textOf(value).trim();
    if (text === "") return "";
    const [, day = "", time = "00:00"] = isoDate.exec(text) ?? [];
    const at = Date.parse(`${day}T${time}Z`);
    if (Number.isNaN(at) || !new Date(at).toISOString().startsWith(day)) {
      throw new TemplateFault({
        message: "date has no date to write",
        expected: "a date such as 2026-04-05",
        got: text,
      });
    }
    return render.call(this, new Date(at), format);
  };
}

/** The value of the column or variable that goes by a name which is itself made of values. */
function columnFilter(used: Set<string>) {
  return function (this: { context: { getSync(path: string[]): unknown } }, name: unknown): unknown {
    used.add(textOf(name));
    return this.context.getSync([textOf(name)]);
  };
}

function textOf(value: unknown): string {
  return value === null || value === undefined ? "" : String(value);
}

/** The names that a template may use: columns, variables, and the keys below `params`. */
export interface Names {
  top: ReadonlySet<string>;
  /** Those of them whose values the manifest itself gives. */
  early: ReadonlySet<string>;
  /** Those of them that are columns or variables of the manifest. */
  columns: ReadonlySet<string>;
  params: ReadonlySet<string>;
  /** Columns by their other name. */
  aliases: ReadonlyMap<string, string>;
}

/** What a rendering sees: it is asked for what the template names, and for nothing else. */
export interface Values {
  /** The value as written, which may be a template itself; null for what has none. */
  raw(name: string): string | number | null;
  /** The value, rendered where it is a template. */
  value(name: string): string | number | null;
  /** Names are the keys below `params`. */
  param: Pick<Values, "raw" | "value">;
}

/** A text that was compiled. Throws TemplateFault. */
export type Template = (values: Values) => string;

/** Whether a text holds a template at all; one that does not is never touched. */
export function isTemplate(text: string): boolean {
  // Most texts of a large sheet have no brace, and are looked through once.
  return text.includes("{") && (text.includes("{{") || text.includes("{%"));
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
  private readonly kept = new Map<string, Template | TemplateProblem>();

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
  compile(text: string): Template | TemplateProblem {
    let made = this.kept.get(text);
    if (made === undefined) {
      // Rows may each bring a text of their own.
      if (this.kept.size >= keptMax) this.kept.clear();
      made = this.made(text);
      this.kept.set(text, made);
    }
    return made;
  }

  private made(text: string): Template | TemplateProblem {
    try {
      const liquid = withNestedNames(text);
      const parsed = this.engine.parse(liquid);
      const named = this.engine.globalVariableSegmentsSync(parsed);
      const unknown = this.unknownName(named);
      if (unknown) return unknown;
      return plainTemplate(text, named) ?? this.liquidTemplate(liquid, parsed, named);
    } catch (error) {
      return this.faultOf(error);
    }
  }

  private unknownName(named: Segments): TemplateProblem | null {
    for (const [root, key] of named) {
      const name = String(root);
      this.used.add(name);
      if (!this.names.top.has(name)) return noName(name, this.names.top);
      if (name !== "params" || typeof key !== "string") continue;
      this.used.add(`params.${key}`);
      if (!this.names.params.has(key)) return noName(`params.${key}`, paramNames(this.names));
    }
    return null;
  }

  private liquidTemplate(liquid: string, parsed: Parsed[], named: Segments): Template {
    // A name that is made of values may be any.
    const any = /\|\s*column\b/.test(liquid);
    const said = named.map(([root]) => String(root));
    const names = [...new Set(any ? [...this.names.early, ...said] : said)];
    return (values) => {
      try {
        return String(this.engine.renderSync(parsed, this.scopeOf(values, names)));
      } catch (error) {
        const inner = innermost(error);
        if (inner instanceof LateName) throw inner;
        throw new TemplateFault(this.faultOf(inner));
      }
    };
  }

  private scopeOf(values: Values, names: readonly string[]): Record<string, unknown> {
    const scope: Record<string, unknown> = Object.create(null);
    for (const name of names) {
      if (name !== "params") put(scope, name, values);
      else {
        const params: Record<string, unknown> = Object.create(null);
        for (const key of this.names.params) put(params, key, values.param);
        scope[name] = params;
      }
    }
    return scope;
  }

  private faultOf(error: unknown): TemplateProblem {
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

type Segments = readonly (readonly unknown[])[];

/** A value that is a template is rendered when the engine asks for it, which it may never do. */
function put(scope: Record<string, unknown>, name: string, values: Pick<Values, "raw" | "value">): void {
  const raw = values.raw(name);
  if (typeof raw !== "string" || !isTemplate(raw)) scope[name] = raw;
  else Object.defineProperty(scope, name, { get: () => values.value(name), enumerable: true });
}

/**
 * Most templates only name values, and need no engine: for a million rows it would take longer than all else together.
 * Null for every other template; the engine has found the names before, so that what is a name is its affair.
 */
function plainTemplate(text: string, named: Segments): Template | null {
  const pieces = text.split(/\{\{\s*(\w+)\s*\}\}/);
  const texts = pieces.filter((_, index) => index % 2 === 0);
  if (texts.some((each) => /\{\{|\{%|\}\}|%\}/.test(each))) return null;
  const roots = new Set(named.map(([root, key]) => (key === undefined && root !== "params" ? root : null)));
  if (pieces.some((name, index) => index % 2 === 1 && !roots.has(name))) return null;
  return (values) => {
    let made = "";
    for (let index = 0; index < pieces.length; index++) {
      const piece = pieces[index] as string;
      made += index % 2 === 0 ? piece : (values.value(piece) ?? "");
    }
    if (made.length > renderedCharactersMax) throw new TemplateFault(tooLarge);
    return made;
  };
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

const tooLarge: TemplateProblem = {
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

function noName(name: string, names: Iterable<string>): TemplateProblem {
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

function unknownWord(kind: "filter" | "tag", word: string, known: readonly string[]): TemplateProblem {
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
