import { bucketTarget } from "../bucket/bucket.js";
import { type FailureKind, failureKinds } from "../core/failure.js";
import { isPublishTarget, publishForms } from "../publish/publisher.js";
import { durationIn } from "../text/amounts.js";

/** Readers of flag values. Each throws FlagError, which says what was expected and what was given. */

/** A value that a flag does not accept. The caller knows the flag, and puts its name in front. */
export class FlagError extends Error {
  override readonly name = "FlagError";
}

export function anyText(text: string): string {
  return text;
}

/** An empty path would mean the current folder, as where a variable of a script is not set. */
export function pathName(text: string): string {
  if (text.trim() === "") throw new FlagError("expected a path, got nothing");
  return text;
}

export function bucketName(text: string): string {
  if (bucketTarget(text) === null)
    throw new FlagError(`expected a bucket such as s3://team/campaign, got ${JSON.stringify(text)}`);
  return text;
}

export function publishTarget(text: string): string {
  if (!isPublishTarget(text)) throw new FlagError(`expected ${publishForms}, got ${JSON.stringify(text)}`);
  return text;
}

export function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new FlagError(`expected a whole number, got ${JSON.stringify(text)}`);
  return Number(text);
}

export function positive(text: string): number {
  const value = wholeNumber(text);
  if (value < 1) throw new FlagError(`expected 1 or more, got ${text}`);
  return value;
}

/** The argument RUN. People may type the name of a job or of an item instead. */
export function numberOfRun(text: string): number {
  if (!/^\d+$/.test(text))
    throw new FlagError(
      `expected the number of a run, as \`bulkgen status --all\` lists them, got ${JSON.stringify(text)}`,
    );
  return positive(text);
}

/** A port of this machine; 0 stands for any that is free. */
export function portNumber(text: string): number {
  const port = wholeNumber(text);
  if (port > 65_535) throw new FlagError(`expected a port from 0 to 65535, got ${text}`);
  return port;
}

/** More than any account has, and still an exact number of millionths. */
const amountMax = 9_000_000_000;

export function amount(text: string): number {
  if (!/^\d+(\.\d{1,6})?$/.test(text)) {
    throw new FlagError(`expected 0 or more credits, with at most six decimals, got ${JSON.stringify(text)}`);
  }
  const value = Number(text);
  if (value > amountMax) throw new FlagError(`expected at most ${amountMax}, got ${text}`);
  return value;
}

/** Credits, or null for no limit. */
export function budget(text: string): number | null {
  if (text.toLowerCase() === "none") return null;
  try {
    return amount(text);
  } catch {
    throw new FlagError(
      `expected credits, or none for no limit, got ${JSON.stringify(text)}; credits are a number up to ${amountMax} with at most six decimals`,
    );
  }
}

/** A daily limit that leaves room for a submit, its poll and the account. */
export function dailyRequests(text: string): number {
  const value = wholeNumber(text);
  if (value < 3) throw new FlagError(`expected 3 or more (a submit, a poll and the account), got ${text}`);
  return value;
}

export function oneOf<const Value extends string>(
  ...values: Value[]
): ((text: string) => Value) & { choices: readonly Value[] } {
  const parse = (text: string) => {
    const found = values.find((value) => value.toLowerCase() === text.toLowerCase());
    if (found === undefined) {
      throw new FlagError(`expected one of ${values.join(", ")}, got ${JSON.stringify(text)}`);
    }
    return found;
  };
  return Object.assign(parse, { choices: values });
}

/** A duration such as `90s`, `30m` or `2h`, in ms. */
export function duration(text: string): number {
  const ms = durationIn(text);
  if (ms === null)
    throw new FlagError(`expected a duration such as 90s, 30m or 2h, got ${JSON.stringify(text)}`);
  return ms;
}

/** A hundred years. */
const ageMsMax = 36_500 * 86_400_000;

/** An age such as `90d` or `12h`, in ms. */
export function age(text: string): number {
  const ms = durationIn(text);
  if (ms === null || ms <= 0)
    throw new FlagError(`expected an age such as 90d or 12h, got ${JSON.stringify(text)}`);
  if (ms > ageMsMax) throw new FlagError(`expected at most 36500d, got ${JSON.stringify(text)}`);
  return ms;
}

/** A number of items, or a share of them. */
export type Share = { count: number } | { percent: number };

export function share(text: string): Share {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(text.trim());
  const value = Number(match?.[1]);
  const percent = match?.[2] === "%";
  if (!match || value <= 0 || (percent ? value > 100 : !Number.isInteger(value))) {
    throw new FlagError(
      `expected a number of items such as 20, or a share such as 5%, got ${JSON.stringify(text)}`,
    );
  }
  return percent ? { percent: value } : { count: value };
}

/** A time of day, or an instant (which does not move when a run starts late). */
export function endTime(text: string): string {
  const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{3})?)?Z$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  return Number.isNaN(instant) ? timeOfDay(text) : new Date(instant).toISOString();
}

/** A share of the account's requests, in percent. */
export function requestShare(text: string): number {
  const match = /^(\d+(?:\.\d+)?)%$/.exec(text.trim());
  const percent = Number(match?.[1]);
  if (!match || percent < 1 || percent > 100) {
    throw new FlagError(`expected a share from 1% to 100%, got ${JSON.stringify(text)}`);
  }
  return percent;
}

function timeOfDay(text: string): string {
  const match = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text.trim());
  if (!match)
    throw new FlagError(
      `expected a time such as 06:00 (or an instant such as 2026-11-21T06:00:00Z), got ${JSON.stringify(text)}`,
    );
  return `${(match[1] ?? "").padStart(2, "0")}:${match[2]}`;
}

/** A share such as `10%`, as a number of percent. */
export function percentage(text: string): number {
  const value = Number(/^(\d+(?:\.\d+)?)%?$/.exec(text.trim())?.[1]);
  if (!(value > 0 && value <= 100)) {
    throw new FlagError(`expected a share such as 10%, got ${JSON.stringify(text)}`);
  }
  return value;
}

/** The start of a local day, in UTC ms. */
export function day(text: string): number {
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text.trim()) ?? [];
  const begin = new Date(Number(year), Number(month) - 1, Number(date));
  if (begin.getMonth() !== Number(month) - 1 || begin.getDate() !== Number(date)) {
    throw new FlagError(`expected a day such as 2026-11-20, got ${JSON.stringify(text)}`);
  }
  return begin.getTime();
}

/** When a report begins, as a function of now (UTC ms): a local day, the most recent time of day, or a duration ago. */
export function since(text: string): (now: number) => number {
  const word = text.trim().toLowerCase();
  if (word === "today" || word === "yesterday") {
    const daysAgo = word === "today" ? 0 : 1;
    return (now) => {
      const { year, month, date } = dateAt(now);
      return new Date(year, month, date - daysAgo).getTime();
    };
  }
  if (/^\d{4}-\d\d-\d\d$/.test(word)) {
    const begin = day(word);
    return () => begin;
  }
  const [, hours, minutes] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(word) ?? [];
  if (hours !== undefined)
    return (now) => {
      const { year, month, date } = dateAt(now);
      const today = new Date(year, month, date, Number(hours), Number(minutes)).getTime();
      return today <= now ? today : new Date(year, month, date - 1, Number(hours), Number(minutes)).getTime();
    };
  if (!/^\d+(\.\d+)?[smhd]$/.test(word))
    throw new FlagError(
      `expected yesterday, today, a day such as 2026-11-20, a time such as 18:00 or a duration such as 12h, got ${JSON.stringify(text)}`,
    );
  const ms = duration(word);
  return (now) => now - ms;
}

function dateAt(now: number): { year: number; month: number; date: number } {
  const local = new Date(now);
  return { year: local.getFullYear(), month: local.getMonth(), date: local.getDate() };
}

/** `key=value`, collected over repeated flags. */
export function parameter(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new FlagError(`expected key=value, got ${JSON.stringify(text)}`);
  return { ...before, [text.slice(0, at).trim()]: text.slice(at + 1) };
}

/** `model=amount`, collected over repeated flags. */
export function modelAmount(text: string, before: Record<string, number> = {}): Record<string, number> {
  const at = text.lastIndexOf("=");
  if (at < 1)
    throw new FlagError(`expected a model and an amount such as film-8=200, got ${JSON.stringify(text)}`);
  return { ...before, [text.slice(0, at).trim()]: amount(text.slice(at + 1)) };
}

/** The values of a flag that may be repeated. */
export function repeated(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Kinds of failure, separated by commas. */
export function failureKindList(text: string): FailureKind[] {
  return text.split(",").map((name) => oneOf(...failureKinds)(name.trim()));
}

/** The name of a job or an edition, which is also that of its folder. */
export function givenName(text: string): string {
  const name = text.trim();
  if (name === "") throw new FlagError("expected a name, got nothing");
  return name;
}

/** An amount, with or without a percent sign; in percent. */
export function percentOrZero(text: string): number {
  return amount(text.replace(/%$/, ""));
}
