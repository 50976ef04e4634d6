import type { Clock } from "../../clock.js";

const retryMsMin = 1_000;
export const retryMsMax = 60_000;

/** How long to wait after each try that failed (ms): twice as long each time, `max` at most. */
export function* retryWaits(max: number = retryMsMax): Generator<number> {
  for (let ms = retryMsMin; ; ms = Math.min(max, ms * 2)) yield ms;
}

/** Does `work` with a signal that aborts after `ms`. */
export async function withTimeout<Answer>(
  clock: Clock,
  ms: number,
  work: (late: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const late = new AbortController();
  const ended = new AbortController();
  void clock.sleep(ms, ended.signal).then(() => late.abort());
  try {
    return await work(late.signal);
  } finally {
    ended.abort();
  }
}
