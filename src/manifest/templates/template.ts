import {
  filters as builtIn,
  CaseTag,
  defaultOperators,
  EchoTag,
  type FilterImplOptions,
  Liquid,
  Output,
  type Template as Parsed,
  toValueSync,
  type Value,
} from "liquidjs";
import type { LiquidOptions } from "liquidjs/dist/liquid-options.js";
import { nearest } from "../../text/nearest.js";
import { meansNo } from "../shape/repairs.js";

/** The longest rendered text: more is an error, such as a text that is appended to itself repeatedly. */
const renderedCharactersMax = 1_000_000;
/** More would take seconds in which nothing can be interrupted. */
const tagsMax = 2_000;
/** The allowed tags. Without loops and files every rendering ends soon. */
export const tagNames = ["assign", "capture", "case", "comment", "echo", "if", "raw", "unless", "#"];

/** A Liquid engine for untrusted texts: a rendering ends soon, reads no file, and fails on an unknown name. */
export function boundedLiquid(options: LiquidOptions = {}): Liquid {
  const engine = new Liquid({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    memoryLimit: renderedCharactersMax,
    relativeReference: false,
    ...options,
  });
  for (const tag of Object.keys(engine.tags)) if (!tagNames.includes(tag)) delete engine.tags[tag];
  const parse = engine.parse.bind(engine);
  engine.parse = (text, file) => {
    if ((text.match(/\{[{%]/g)?.length ?? 0) > tagsMax)
      throw new Error(`a template has at most ${tagsMax} tags ({{ }} or {% %})`);
    return parse(text, file);
  };
  return engine;
}

/** A problem of a template, or of one rendering of it. */
export interface TemplateProblem {
  message: string;
  expected: string;
  got: string;
  nearest?: string;
}

/** Thrown when a template cannot be rendered. */
export class TemplateFault extends Error {
  override readonly name = "TemplateFault";
  constructor(
    readonly fault: TemplateProblem,
    /** The text itself is wrong, for every row. */
    readonly everywhere = false,
    /** The column whose cell is at fault, if it is not the field that is rendered. */
    readonly cell: string | null = null,
  ) {
    super(fault.message);
  }
}

/** Thrown when a template names a value that depends on the service's models. */
export class LateName extends Error {
  override readonly name = "LateName";
  constructor(readonly named: string) {
    super(`"${named}" is not known yet`);
  }

  /** The problem to report if it will not be known later either. */
  get fault(): TemplateProblem {
    return {
      message: `the template names "${this.named}", which is known only when an item's file is named`,
      expected: "category, key, copy and take only in the field output",
      got: this.named,
    };
  }
}

/**
 * The filters of templates. Of Liquid's own filters, only those whose result depends on the text alone, not on the clock,
 * chance or time zone: a prompt that changes without an edit would be paid for again.
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
] as const;

/** Those that calculate. */
const numeric = [
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

export const filterNames: readonly string[] = [
  ...taken,
  ...numeric,
  "slug",
  "pad",
  "date",
  "column",
  "lookup",
].toSorted();

/** Look-up tables of a job, by name. */
type Tables = Readonly<Record<string, Readonly<Record<string, string>>>>;

interface Surroundings {
  /** Collects the columns that are named by values. */
  used: Set<string>;
  tables: Tables;
}

/** Registers these filters in an engine and removes all others. */
function useFilters(engine: Liquid, around: Surroundings): void {
  const own = {
    slug,
    pad,
    date: dateFilter(engine),
    column: columnFilter(around),
    lookup: lookupFilter(around.tables),
  } as Record<string, FilterImplOptions>;
  for (const name of Object.keys(engine.filters)) delete engine.filters[name];
  for (const name of taken) engine.registerFilter(name, builtIn[name] as FilterImplOptions);
  for (const name of numeric) engine.registerFilter(name, numericFilter(name));
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

/** Letters without a Unicode decomposition. */
const ligatures: Readonly<Record<string, string>> = { æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d" };

/**
 * Liquid's own filter takes any other text for 0, such as `19,90` or `5 €`. The result has no digits that come from
 * calculating: 19.9 times 1.19 is 23.681.
 */
function numericFilter(name: (typeof numeric)[number]): FilterImplOptions {
  const calculate = builtIn[name] as (this: unknown, ...numbers: unknown[]) => number;
  const fail = (got: string) => {
    const expected = "a number such as 19.9, with a point and no other signs";
    return new TemplateFault({ message: `the ${name} filter needs a valid number`, expected, got });
  };
  return function (this: unknown, ...given: unknown[]) {
    for (const text of given.slice(0, 2).map(textOf)) if (Number.isNaN(Number(text))) throw fail(text);
    const result = calculate.apply(this, given);
    if (!Number.isFinite(result)) throw fail(given.map(textOf).join(` | ${name}: `));
    return Number.isInteger(result) ? result : Number(result.toPrecision(15));
  };
}

const padMax = 100;

/** `7` becomes `007` with `pad: 3`. */
function pad(value: unknown, width: unknown): string {
  const wanted = Number(width);
  if (!Number.isInteger(wanted) || wanted < 1 || wanted > padMax) {
    const expected = `a width from 1 to ${padMax}, such as pad: 3`;
    throw new TemplateFault({
      message: "the pad filter needs a valid width",
      expected,
      got: textOf(width) || "none",
    });
  }
  return textOf(value).padStart(wanted, "0");
}

const isoDate = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?Z?)?$/;

/** The orders in which a sheet may write its dates, besides 2026-04-05. */
const dateOrders: Readonly<Record<string, readonly ["d" | "m" | "y", "d" | "m" | "y", "d" | "m" | "y"]>> = {
  "dd/mm/yyyy": ["d", "m", "y"],
  "mm/dd/yyyy": ["m", "d", "y"],
  "yyyy/mm/dd": ["y", "m", "d"],
};

/** Liquid's date filter, restricted to UTC, and to ISO dates unless the order of the parts is said. */
function dateFilter(engine: Liquid): (value: unknown, format: unknown, order?: unknown) => string {
  const render = engine.filters["date"] as (this: unknown, value: unknown, format: unknown) => string;
  return function (this: unknown, value, format, order) {
    const written = textOf(value).trim();
    if (written === "") return "";
    const text = order === undefined ? written : isoFrom(written, textOf(order).toLowerCase());
    const [, day = "", time = "00:00"] = isoDate.exec(text) ?? [];
    const at = Date.parse(`${day}T${time}Z`);
    if (Number.isNaN(at) || !new Date(at).toISOString().startsWith(day)) {
      throw new TemplateFault({
        message: "the date filter needs a valid date",
        expected:
          order === undefined
            ? 'a date such as 2026-04-05; other orders are said, such as date: "%d %B", "dd/mm/yyyy"'
            : `a date in the order ${textOf(order)}`,
        got: written,
      });
    }
    return render.call(this, new Date(at), format);
  };
}

/** `5.4.2026` in the order `dd/mm/yyyy` is 2026-04-05. Days and months may have one digit; any sign may be between them. */
function isoFrom(text: string, order: string): string {
  const parts = Object.hasOwn(dateOrders, order) ? dateOrders[order] : undefined;
  if (parts === undefined)
    throw new TemplateFault({
      message: "the date filter does not know this order of a date",
      expected: `one of: ${Object.keys(dateOrders).join(", ")}`,
      got: order,
    });
  const numbers = /^(\d{1,4})[^\d]+(\d{1,2})[^\d]+(\d{1,4})$/.exec(text)?.slice(1) ?? [];
  const of = (part: "d" | "m" | "y") => numbers[parts.indexOf(part)] ?? "";
  return `${fullYear(of("y"), text)}-${of("m").padStart(2, "0")}-${of("d").padStart(2, "0")}`;
}

/** Two digits are read as strptime reads them: 68 is 2068, and 69 is 1969. */
function fullYear(year: string, date: string): string {
  if (year.length === 1 || year.length === 3)
    throw new TemplateFault({
      message: "the date filter needs a valid date",
      expected: "a year of two or four digits",
      got: date,
    });
  return year.length === 2 ? `${Number(year) < 69 ? "20" : "19"}${year}` : year;
}

/** The value of the column or variable whose name is itself made of values. */
function columnFilter({ used }: Surroundings) {
  return function (this: { context: { getSync(path: string[]): unknown } }, name: unknown): unknown {
    used.add(textOf(name));
    return this.context.getSync([textOf(name)]);
  };
}

/** `{{ speaker | lookup: "voice" }}` is what the job's table `voice` has for the speaker. */
function lookupFilter(tables: Tables) {
  return (value: unknown, name: unknown): string => {
    const wanted = textOf(name);
    const table = Object.hasOwn(tables, wanted) ? tables[wanted] : undefined;
    if (table === undefined) {
      const known = Object.keys(tables);
      throw new TemplateFault({
        message: `the lookup filter needs a table of the job, and there is no table "${wanted}"`,
        expected: known.length === 0 ? "tables in the job file" : `one of: ${known.join(", ")}`,
        got: wanted || "none",
        ...nearestOf(wanted, known),
      });
    }
    const key = textOf(value).trim();
    if (Object.hasOwn(table, key)) return table[key] as string;
    const keys = Object.keys(table);
    throw new TemplateFault({
      message: `the table ${wanted} has no entry for this value`,
      expected: `one of: ${keys.slice(0, listedMax).join(", ")}${keys.length > listedMax ? " …" : ""}`,
      got: key || "nothing",
      ...nearestOf(key, keys),
    });
  };
}

function nearestOf(word: string, known: readonly string[]): { nearest?: string } {
  const near = nearest(word, known);
  return near === undefined ? {} : { nearest: near };
}

function textOf(value: unknown): string {
  return value === null || value === undefined ? "" : String(value);
}

/** The names that a template may use: columns, variables, and the keys below `params`. */
export interface Names {
  top: ReadonlySet<string>;
  /** Names whose values the manifest gives. */
  early: ReadonlySet<string>;
  /** Names of columns and variables of the manifest. */
  columns: ReadonlySet<string>;
  params: ReadonlySet<string>;
  /** Columns by their alternative names. */
  aliases: ReadonlyMap<string, string>;
}

/** The values of a rendering: only those that the template names are requested. */
export interface Values {
  /** The value as written, which may be a template; null when there is none. */
  raw(name: string): string | number | null;
  /** The value, rendered if it is a template. */
  value(name: string): string | number | null;
  /** Names are the keys below `params`. */
  param: Pick<Values, "raw" | "value">;
  /** Told of a name that the template puts out, and that has no value. */
  empty(name: string): void;
}

/** A compiled template. Throws TemplateFault. */
export type Template = (values: Values) => string;

const keptMax = 1_000;

/** Compiles the templates of a manifest and collects the names that they use. */
export class Templates {
  readonly used = new Set<string>();
  private readonly engine: Liquid;
  private readonly kept = new Map<string, Template | TemplateProblem>();
  /** Whether values are being read for what the template at hand puts out. */
  private isPuttingOut = false;

  constructor(
    private readonly names: Names,
    tables: Tables = {},
  ) {
    this.engine = boundedLiquid({ timezoneOffset: 0, locale: "en-US", fs: noFiles, operators });
    useFilters(this.engine, { used: this.used, tables });
  }

  /** The template, or its fault: a syntax error or an unknown name, which is wrong for every row. */
  compile(text: string): Template | TemplateProblem {
    let made = this.kept.get(text);
    if (made === undefined) {
      // Each row may have a different text.
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
      if (unknown) return curvedQuotes(text) ?? unknown;
      const short = new Set(named.map(([root]) => String(root)).filter((name) => this.isShort(name)));
      const template = plainTemplate(text, named) ?? this.liquidTemplate(liquid, parsed, named);
      return short.size === 0 ? template : (values) => template(withShortNames(values, short));
    } catch (error) {
      return curvedQuotes(text) ?? this.faultOf(error);
    }
  }

  private unknownName(named: Segments): TemplateProblem | null {
    for (const [root, key] of named) {
      const name = String(root);
      this.used.add(this.isShort(name) ? `params.${name}` : name);
      if (!this.names.top.has(name) && !this.isShort(name)) return noName(name, this.names);
      if (name !== "params" || typeof key !== "string") continue;
      this.used.add(`params.${key}`);
      if (!this.names.params.has(key)) return noParam(key, this.names);
    }
    return null;
  }

  /** The name of a param without `params.`, where no column and no variable has it. */
  private isShort(name: string): boolean {
    return !this.names.top.has(name) && this.names.params.has(name);
  }

  private liquidTemplate(liquid: string, parsed: Parsed[], named: Segments): Template {
    // A name made of values may be any name.
    const any = /\|\s*column\b/.test(liquid);
    const said = named.map(([root]) => String(root));
    const names = new Set(said);
    const others = any ? [...this.names.early].filter((name) => !names.has(name)) : [];
    const tested = testedNames(liquid).filter((name) => said.includes(name.split(".")[0] ?? ""));
    this.watch(parsed);
    return (values) => {
      const emptied = new Set<string>();
      // A value may be a template, which is rendered while this one reads it.
      const { isPuttingOut } = this;
      this.isPuttingOut = false;
      try {
        for (const name of tested) refuseNo(name, values);
        const scope = this.scopeOf(values, [...names, ...others], emptied);
        const text = String(this.engine.renderSync(parsed, scope));
        for (const name of emptied) values.empty(name);
        return text;
      } catch (error) {
        const inner = innermost(error);
        if (inner instanceof LateName || inner instanceof TemplateFault) throw inner;
        throw new TemplateFault(this.faultOf(inner));
      } finally {
        this.isPuttingOut = isPuttingOut;
      }
    };
  }

  /** Lets a template say when it puts a value out: an empty one is worth a note there, not where it is only asked for. */
  private watch(parsed: readonly Parsed[]): void {
    for (const each of parsed) {
      if (each instanceof CaseTag) evaluateAsText(each as unknown as { value: Value });
      if (each instanceof Output || each instanceof EchoTag) this.watchOutput(each as { value?: Value });
      const { children }: Parsed = each;
      if (children) this.watch(toValueSync(children.call(each, false, true)) as Parsed[]);
    }
  }

  private watchOutput({ value }: { value?: Value }): void {
    if (value === undefined || value.filters.some(({ name }) => name === "default")) return;
    const evaluated = value.value.bind(value);
    const set = (isPuttingOut: boolean) => {
      this.isPuttingOut = isPuttingOut;
    };
    value.value = function* (context, lenient) {
      set(true);
      try {
        return yield evaluated(context, lenient);
      } finally {
        set(false);
      }
    };
  }

  /** Values are read only if the template turns out to need them: their cells may have been lost. */
  private scopeOf(values: Values, names: readonly string[], emptied: Set<string>): Record<string, unknown> {
    const scope: Record<string, unknown> = Object.create(null);
    const read = (name: string) => {
      const value = values.value(name);
      if (this.isPuttingOut && (value ?? "") === "") emptied.add(name);
      return value;
    };
    for (const name of names) {
      if (name !== "params") put(scope, name, () => read(name));
      else {
        const params: Record<string, unknown> = Object.create(null);
        for (const key of this.names.params) put(params, key, () => values.param.value(key));
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
    if (undefinedName !== undefined) return noName(undefinedName, this.names);
    const [, filter] = /^undefined filter: (\S+?)(?:,|$)/.exec(message) ?? [];
    if (filter !== undefined) return unknownWord("filter", filter, filterNames);
    const [, tag] = /^tag "(.*)" not found/.exec(message) ?? [];
    if (tag !== undefined) return unknownWord("tag", tag, tagNames);
    if (message.startsWith("memory alloc limit")) return tooLarge;
    return {
      message: "the template cannot be rendered",
      expected:
        "Liquid such as {{ name }}, {{ name | slug }} or {% if name %}…{% endif %}; {% raw %}…{% endraw %} around text in which {{ and {% mean nothing",
      got: message.replace(/, line:(\d+), col:(\d+)$/, " at $1:$2 of the text"),
    };
  }
}

/** An empty cell has no value, and equals an empty text all the same. */
const operators = {
  ...defaultOperators,
  "==": isEqual,
  "!=": function* (one: unknown, other: unknown) {
    return !(yield* isEqual(one, other));
  },
};

const sameValue = defaultOperators["=="] as (one: unknown, other: unknown) => unknown;

function* isEqual(one: unknown, other: unknown): Generator<unknown, boolean, boolean> {
  if (yield sameValue(one, other)) return true;
  return one === null || other === null ? yield sameValue(one ?? "", other ?? "") : false;
}

/** `case` does not use the operators: there, too, an empty cell equals an empty text. */
function evaluateAsText({ value }: { value: Value }): void {
  const evaluated = value.value.bind(value);
  value.value = function* (context, lenient) {
    return (yield evaluated(context, lenient)) ?? "";
  };
}

/** The names of values that a condition does not compare with anything, such as `sale` in `{% if sale and season %}`. */
function testedNames(text: string): string[] {
  const conditions = [...text.matchAll(/\{%-?\s*(?:if|elsif|unless)\s(.*?)-?%\}/gs)];
  return conditions
    .flatMap(([, condition = ""]) => condition.split(/\s+(?:and|or)\s+/))
    .map((part) => part.trim().replace(/^not\s+/, ""))
    .filter((part) => /^(?:\w+|params\.[\w-]+)$/.test(part));
}

/** Only an empty text is not true for Liquid, so a condition on a cell with FALSE or `no` would do the opposite of it. */
function refuseNo(name: string, values: Values): void {
  const value = name.startsWith("params.")
    ? values.param.value(name.slice("params.".length))
    : values.value(name);
  if (typeof value !== "string" || !meansNo(value)) return;
  throw new TemplateFault({
    message: `the template has a condition on ${name}, for which any text counts as true`,
    expected: `an empty text, or a comparison such as {% if ${name} != ${JSON.stringify(value.trim())} %}`,
    got: value,
  });
}

/** Some spreadsheets make straight quotes curved while a person types. Liquid knows only the straight ones. */
function curvedQuotes(text: string): TemplateProblem | null {
  const [, got] = /\{[{%][^{}"']*?([“”„‘’‚«][^{}“”’»]*[“”’»]?)/.exec(text) ?? [];
  if (got === undefined) return null;
  return {
    message: "the template has curved quotes",
    expected: "straight quotes (\" or ') between {{ and }}; a spreadsheet may have changed them",
    got,
  };
}

type Segments = readonly (readonly unknown[])[];

function put(scope: Record<string, unknown>, name: string, get: () => unknown): void {
  Object.defineProperty(scope, name, { get, enumerable: true });
}

/**
 * Renders templates that only name values without the engine, which would take most of the time for a million rows.
 * Null for all other templates. The engine has already checked the names.
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
      const value = index % 2 === 0 ? piece : (values.value(piece) ?? "");
      if (value === "" && index % 2 === 1) values.empty(piece);
      made += value;
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
  message: "the rendered text is too long",
  expected: `at most ${renderedCharactersMax} characters`,
  got: "more",
};

/** The first cause: the engine wraps what a filter or a value throws. */
function innermost(error: unknown): unknown {
  const { originalError } = error as { originalError?: unknown };
  return originalError === undefined ? error : innermost(originalError);
}

const listedMax = 12;

/** Reads the values of params by their short names. */
function withShortNames(values: Values, short: ReadonlySet<string>): Values {
  const of = (name: string) => (short.has(name) ? values.param : values);
  return {
    raw: (name) => of(name).raw(name),
    value: (name) => of(name).value(name),
    param: values.param,
    empty: (name) => values.empty(name),
  };
}

function noName(name: string, { top, params }: Names): TemplateProblem {
  const near = nearest(name, [...top, ...params]);
  return notOneOf(name, top, near === undefined || top.has(near) ? near : `params.${near}`);
}

function noParam(key: string, { params }: Names): TemplateProblem {
  const names = [...params].map((each) => `params.${each}`);
  return notOneOf(`params.${key}`, names, nearest(`params.${key}`, names));
}

function notOneOf(name: string, names: Iterable<string>, near: string | undefined): TemplateProblem {
  const all = [...names];
  const listed = all.slice(0, listedMax).join(", ");
  const more = all.length > listedMax ? ` and ${all.length - listedMax} more` : "";
  return {
    message: `the template names "${name}", which is neither a column nor a variable`,
    expected: all.length === 0 ? "a param that the manifest sets" : `one of: ${listed}${more}`,
    got: name,
    ...(near === undefined ? {} : { nearest: near }),
  };
}

function unknownWord(kind: "filter" | "tag", word: string, known: readonly string[]): TemplateProblem {
  const near = nearest(word, known);
  return {
    message: `unknown template ${kind} "${word}"`,
    expected: `one of: ${known.join(", ")}`,
    got: word,
    ...(near === undefined ? {} : { nearest: near }),
  };
}

const nested = /\{\{(-?)\s*([\w.-]*(?:\{\{\s*\w+\s*\}\}[\w.-]*)+)\s*((?:\|[^{}]*?)?)(-?)\}\}/g;

/**
 * `{{ prompt_{{lang}} }}` means the column whose name ends with the value of `lang`. Liquid itself does not have this.
 */
function withNestedNames(text: string): string {
  return withComposedConditions(text).replace(
    nested,
    (_all, open: string, name: string, filters: string, close: string) => {
      return `{{${open} "" | ${joinedName(name)} | column ${filters}${close}}}`;
    },
  );
}

const condition = /\{%-?\s*(?:if|elsif|unless|case|when)\b(?:[^{}%]|\{\{[^{}]*\}\}|%(?!\}))*%\}/g;
const composed = /[\w.-]*(?:\{\{\s*\w+\s*\}\}[\w.-]*)+/g;

/** `{% if headline_{{lang}} != "" %}` means the column whose name ends with the value of `lang`, too. */
function withComposedConditions(text: string): string {
  if (!text.includes("{%")) return text;
  const assigned: string[] = [];
  const plain = text.replace(condition, (tag) =>
    tag.replace(composed, (name) => {
      const variable = `composed_${assigned.length + 1}`;
      assigned.push(`{%- assign ${variable} = "" | ${joinedName(name)} | column -%}`);
      return variable;
    }),
  );
  return assigned.join("") + plain;
}

/** The filters that put together a name that is itself made of values. */
function joinedName(name: string): string {
  return name
    .split(/\{\{\s*(\w+)\s*\}\}/)
    .map((piece, index) => (index % 2 === 0 ? `append: "${piece}"` : `append: ${piece}`))
    .join(" | ");
}
