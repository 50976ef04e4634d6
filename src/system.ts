import { randomUUID } from "node:crypto";
import type { AlarmClock, Random } from "./clock.js";

/** The real clock, timers and randomness: the only file that touches them. */

/** The longest delay that a timer takes; a longer one would fire at once. */
const timerMsMax = 2 ** 31 - 1;
/** How often an alarm compares the clocks (ms): timers stand still while the machine sleeps, and know nothing of the wall clock. */
const compareMs = 30_000;
/** The wall clock is corrected by a little all the time; by more than this (ms) it was set. */
const correctionMsMax = 2_000;

export const systemClock: AlarmClock = {
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
  alarm: (at, ring) => {
    const offset = () => Date.now() - performance.now();
    const before = offset();
    const look = () => {
      const left = at - Date.now();
      if (left <= 0 || Math.abs(offset() - before) > correctionMsMax) return ring();
      timer = setTimeout(look, Math.min(left, compareMs));
    };
    let timer = setTimeout(look, Math.max(0, Math.min(at - Date.now(), compareMs)));
    return () => clearTimeout(timer);
  },
};

export const systemRandom: Random = { next: () => Math.random(), uuid: () => randomUUID() };
