import { filters as builtIn, type FilterImplOptions, type Liquid } from "liquidjs";
import { TemplateFault } from "./fault.js";

/**
 * The filters of templates. From Liquid's own only those are taken whose result depends on nothing but the text: no
 * clock, no chance, no place on earth, because a prompt that changed by itself would be paid again.
 */
const taken = [
  ...["append", "prepend", "capitalize", "downcase", "upcase", "strip", "lstrip", "rstrip", "strip_newlines"],
  ...["replace", "replace_first", "replace_last", "remove", "remove_first", "remove_last"],
  ...["truncate", "truncatewords", "slice", "split", "join", "first", "last", "size", "default"],
  ...[
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
  ],
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
