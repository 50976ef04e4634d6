import { localMinute } from "../../text/times.js";

/** How numbers and times read on the page. */

const decimals = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

/** `1,234.5` */
export function number(amount: number): string {
  return decimals.format(amount);
}

/** `1 credit`, `1,234.5 credits` */
export function credits(amount: number): string {
  return counted(amount, "credit");
}

/** `1 item`, `2,000 items` */
export function counted(amount: number, one: string, many = `${one}s`): string {
  return `${number(amount)} ${amount === 1 ? one : many}`;
}

const steps: [number, number, Intl.RelativeTimeFormatUnit][] = [
  [60_000, 1_000, "second"],
  [3_600_000, 60_000, "minute"],
  [86_400_000, 3_600_000, "hour"],
  [30 * 86_400_000, 86_400_000, "day"],
];

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** `4 minutes ago`, `in 2 hours`; or the date, if that says more. */
export function ago(at: number, now: number): string {
  const age = now - at;
  const step = steps.find(([below]) => Math.abs(age) < below);
  if (step === undefined) return localMinute(at);
  const [, ms, unit] = step;
  const amount = Math.round(-age / ms);
  return unit === "second" && Math.abs(amount) < 5 ? "just now" : relative.format(amount, unit);
}

/** `07:30` */
export function clockTime(at: number): string {
  return localMinute(at).slice(11);
}

/** `07:30:12.345` */
export function exactTime(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  return `${time}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
