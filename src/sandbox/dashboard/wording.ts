import prettyMilliseconds from "pretty-ms";

/** How numbers and times read on the page. */

const decimals = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const days = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });

/** `1,234.5` */
export function amount(number: number): string {
  return decimals.format(number);
}

/** `1 request`, `3 requests` */
export function counted(number: number, noun: string): string {
  return `${amount(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** `20 November 2026` */
export function day(ms: number): string {
  return days.format(ms);
}

/** `just now`, `4 minutes ago` */
export function ago(ms: number, now: number): string {
  const age = now - ms;
  return age < 1_000 ? "just now" : `${prettyMilliseconds(age, { compact: true, verbose: true })} ago`;
}

/** For machines and for those who want to know exactly. */
export function stamp(ms: number): string {
  return new Date(ms).toISOString();
}
