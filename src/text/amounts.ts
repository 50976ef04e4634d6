import prettyBytes from "pretty-bytes";
import prettyMilliseconds from "pretty-ms";

/** A duration as people say it: `37.2s`, `12m 5s`, `3h 2m`. */
export function duration(ms: number): string {
  return prettyMilliseconds(Math.max(0, ms), {
    unitCount: 2,
    ...(ms >= 60_000 ? { secondsDecimalDigits: 0 } : {}),
  });
}

/** A time to wait in whole seconds, at least one. */
export function wait(ms: number): string {
  return prettyMilliseconds(Math.max(1_000, Math.ceil(ms / 1_000) * 1_000), {
    unitCount: 2,
    secondsDecimalDigits: 0,
  });
}

export function fileSize(bytes: number): string {
  return prettyBytes(bytes);
}

/** `1 item`, `2 items`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The ms of a duration such as `90s`, `30m` or `2h`; null for any other text. */
export function durationIn(text: string): number | null {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim()) ?? [];
  const ms = unitMs[unit];
  return ms === undefined ? null : Number(number) * ms;
}
