/**
 * Reverses the changes that spreadsheets make to values. `16:9` is saved as the time 16:09, as 16:09:00 or as a fraction of
 * a day; `true` as TRUE or WAHR; `1.0` as 1; `3-4` as a day in March or April. A repair is applied only on request: two
 * values may have become the same, and only a person knows which was meant.
 */

/** A value, and the option that it is read as. */
export interface Repair {
  column: string;
  from: string;
  to: string;
}

/** The only option that a spreadsheet would turn into this value; null when none or several would. */
export function optionBefore(value: string, options: readonly string[]): string | null {
  const written = plainText(value);
  const meant = options.filter((option) => becomes(plainText(option), written));
  return meant.length === 1 ? (meant[0] ?? null) : null;
}

/** A whole number with decimals, such as `2.0`. `1,000` is ambiguous, so it is not repaired. */
export function wholeNumberBefore(value: string): string | null {
  return /^([+-]?\d{1,6})[.,]0{1,2}$/.exec(value.trim())?.[1] ?? null;
}

/** Replaces the dashes, quotes and spaces of autocorrection by those of a keyboard. */
function plainText(text: string): string {
  return text
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[\u201c\u201d]/g, '"')
    .replace(/[\u00a0\u202f]/g, " ")
    .trim();
}

function becomes(option: string, value: string): boolean {
  return (
    option.toLowerCase() === value.toLowerCase() ||
    truthOf(option) === (truthOf(value) ?? "neither") ||
    timeOf(option, value) ||
    dateOf(option, value) ||
    numberOf(option, value)
  );
}

const truthWords: Readonly<Record<string, boolean>> = {
  true: true,
  wahr: true,
  vrai: true,
  verdadero: true,
  vero: true,
  waar: true,
  prawda: true,
  false: false,
  falsch: false,
  faux: false,
  falso: false,
  onwaar: false,
  fałsz: false,
};

function truthOf(text: string): boolean | null {
  return truthWords[text.toLowerCase()] ?? null;
}

const dayMinutes = 24 * 60;

const noWords = ["no", "nein", "non", "nee", "nie"];

/** Whether a text says that something is not so. */
export function meansNo(text: string): boolean {
  const word = text.trim().toLowerCase();
  return truthOf(word) === false || noWords.includes(word);
}

/** A ratio `a:b` as the time `a` hours and `b` minutes, or `a` minutes and `b` seconds. */
function timeOf(option: string, value: string): boolean {
  const [, a, b] = (/^(\d{1,3}):(\d{1,2})$/.exec(option) ?? []).map(Number);
  if (a === undefined || b === undefined) return false;
  const share = Number(value.replace(",", "."));
  if (/^\d?[.,]\d+$/.test(value) && Math.abs(share * dayMinutes - (a * 60 + b)) < 0.01) return true;
  const day = /^(?:1899-12-(30|31)|1900-01-0(\d))[T ]/.exec(value);
  const days = day ? (day[1] ? Number(day[1]) - 30 : Number(day[2]) + 1) : 0;
  const time = /(?:^|[T ])(\d{1,3}):(\d{2})(?::(\d{2})(?:\.0+)?)?(?:\s*([ap])\.?m\.?)?Z?$/i.exec(value);
  if (!time || (time.index > 0 && !day)) return false;
  const [, hours = "", minutes = "", seconds = "0", half] = time;
  const hour = half ? (Number(hours) % 12) + (/p/i.test(half) ? 12 : 0) : Number(hours) + days * 24;
  if (hour === a && Number(minutes) === b && Number(seconds) === 0) return true;
  return hour === 0 && Number(minutes) === a && Number(seconds) === b;
}

const months = [
  ["jan", "jän"],
  ["feb", "fév", "fev"],
  ["mar", "mär", "mrz"],
  ["apr", "avr"],
  ["may", "mai"],
  ["jun", "juin"],
  ["jul", "juil"],
  ["aug", "aoû"],
  ["sep"],
  ["oct", "okt"],
  ["nov"],
  ["dec", "dez", "déc"],
];

/** Two small numbers, as in `3-4`, `3/4` or `3.4`, as a day and a month in either order. */
function dateOf(option: string, value: string): boolean {
  const [, a, b] = (/^(\d{1,2})[-/.](\d{1,2})$/.exec(option) ?? []).map(Number);
  const date = dayAndMonth(value);
  if (a === undefined || b === undefined || !date) return false;
  const [one, other] = date;
  return (one === a && other === b) || (one === b && other === a);
}

function dayAndMonth(value: string): [number, number] | null {
  const iso = /^\d{4}-(\d{2})-(\d{2})(?:[T ]00:00.*)?$/.exec(value);
  const numeric = /^(\d{1,2})[./-](\d{1,2})(?:[./-](?:\d{2}|\d{4})?)?$/.exec(value);
  const found = iso ?? numeric;
  if (found) return [Number(found[1]), Number(found[2])];
  const named = /^(?:(\d{1,2})[.\s-]*(\p{L}{3,})|(\p{L}{3,})[.\s-]*(\d{1,2}))\.?(?:[\s,-]+\d{2,4})?$/u.exec(
    value,
  );
  const word = (named?.[2] ?? named?.[3] ?? "").toLowerCase();
  const month = months.findIndex((names) => names.some((name) => word.startsWith(name)));
  return named && month >= 0 ? [Number(named[1] ?? named[4]), month + 1] : null;
}

/** `1.0` as 1, `0.5` as 0,5 or 50%, `1080` as 1,080. */
function numberOf(option: string, value: string): boolean {
  if (!/^[+-]?\d+(\.\d+)?%?$/.test(option)) return false;
  const wanted = option.endsWith("%") ? Number(option.slice(0, -1)) / 100 : Number(option);
  return readings(value).some((reading) => Math.abs(reading - wanted) <= Math.abs(wanted) * 1e-9);
}

function readings(value: string): number[] {
  if (!/^[+-]?[\d.,' ]*\d(?:e[+-]?\d+)?\s?%?$/i.test(value)) return [];
  const share = value.endsWith("%") ? 100 : 1;
  const digits = value.replace(/\s?%$/, "");
  const texts = [digits, digits.replace(",", ".")];
  if (/^[+-]?\d{1,3}([.,' ]\d{3})+$/.test(digits)) texts.push(digits.replaceAll(/[.,' ]/g, ""));
  return texts.map((text) => Number(text) / share).filter((number) => Number.isFinite(number));
}
