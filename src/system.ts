import { randomUUID } from "node:crypto";
import { performance } from "node:perf_hooks";
import type { Clock, Random } from "./clock.js";

/** The real clock, timers and randomness: the only file that touches them. */

/** The longest delay that a timer takes; a longer one would fire at once. */
const timerMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, Math.min(Math.max(0, ms), timerMsMax));
      signal?.addEventListener("abort", end, { once: true });
    }),
};

export const systemRandom: Random = { next: () => Math.random(), uuid: () => randomUUID() };
