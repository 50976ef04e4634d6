/**
 * The one rule for doing a request again, whatever it is: when, how often, and what `Retry-After` means. Polls of a task that
 * is in progress have a rule of their own (`core/pace/poll.ts`), because waiting for a result is no failure.
 */
export const backoffMsMax = 60_000;

/** Milliseconds to wait after the n-th failure in a row (from 1): doubling from one second, at most a minute. */
export function backoffMs(failures: number): number {
  return Math.min(backoffMsMax, 1_000 * 2 ** (Math.max(1, failures) - 1));
}

/**
 * How often in a row the same thing is tried for one item: its paid request, as long as each was proven not charged; the
 * download of a file; a poll that is to find a fresh address. After that it needs a person.
 */
export const triesMax = 8;

/**
 * How often something is tried that somebody waits for: the account, the models, a task's record, the publication of an
 * input, a notification.
 */
export const readTriesMax = 3;

/** A repeated request is on its way for a while, and clocks differ: it is sent only well before its key is forgotten. */
const repeatMarginMs = 60 * 60_000;

/** Whether a service that knows a request's key for so long (ms) knows it still, wherever within its bounds the time now is. */
export function knowsStill(keptMs: number, sentAt: number, { latest }: { latest: number }): boolean {
  return latest - sentAt < keptMs - repeatMarginMs;
}

const dayMs = 24 * 60 * 60_000;

/**
 * How long (ms) an answer asks to be left alone, apart from a 429, which has pauses of its own for the whole account: a
 * failure that will pass may say so with `Retry-After`. At most a day, after which one request may ask again. Null if it does
 * not say.
 */
export function askedPauseMs(
  { status, headers }: { status: number; headers: Readonly<Record<string, string>> },
  now: number,
): number | null {
  if (status < 500 && status !== 408 && status !== 425) return null;
  return statedPauseMs(headers, now);
}

/** The pause (ms) that `Retry-After` asks for, at most a day; null if there is none. For a file's server, 429 included. */
export function statedPauseMs(headers: Readonly<Record<string, string>>, now: number): number | null {
  const ms = retryAfterMs(headers, now);
  return ms === null ? null : Math.min(dayMs, ms);
}

/** Waits (ms) after successive 429s without a stated delay; the last one repeats. */
const silences = [1, 2, 5, 15, 60].map((minutes) => minutes * 60_000);

/** Milliseconds to pause after the n-th 429 in a row (from 1). */
export function silenceMs(strikes: number): number {
  return silences[Math.min(strikes, silences.length) - 1] ?? silences[0] ?? 60_000;
}

/**
 * The least pause (ms) after the n-th 429 in a row, even if the service asked for less: a service that keeps refusing
 * is left alone for longer each time.
 */
export function leastSilenceMs(strikes: number): number {
  return strikes <= silences.length ? 1_000 * 2 ** (strikes - 1) : silenceMs(strikes - silences.length);
}

/** A longer delay is more likely a mistake: the service is asked again once a day, and one request a day harms nobody. */
export const retryAfterMsMax = 24 * 60 * 60_000;

/**
 * The wait that a `Retry-After` header asks for, in ms: seconds, or an HTTP date relative to the response's own `Date`
 * (so that a wrong clock on either side does not matter; without one, `now` is used). Null if it is unreadable. A
 * negative number is unreadable, although `Date.parse` takes it for a year; so is a date without a zone (asctime).
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>, now: number): number | null {
  const ms = statedRetryAfterMs(headers, now);
  return ms === null ? null : Math.min(retryAfterMsMax, ms);
}

/** The wait (ms) that a `Retry-After` header asks for, however long. Null if it is unreadable. */
export function statedRetryAfterMs(headers: Readonly<Record<string, string>>, now: number): number | null {
  const value = headers["retry-after"]?.trim();
  if (value === undefined) return null;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1_000);
  const until = /^[A-Z][a-z]+, /.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(until)) return null;
  const answered = Date.parse(headers.date ?? "");
  return Math.max(0, until - (Number.isNaN(answered) ? now : answered));
}
