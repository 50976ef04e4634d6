import type { RunOptions } from "../../core/next/options.js";

/**
 * When submitting ends (UTC ms): the earlier of `--until` (an instant, or the next such time of day here) and
 * `--max-duration`.
 */
export function deadlineOf(options: Pick<RunOptions, "until" | "maxDurationMs">, now: number): number | null {
  const times = [
    ...(options.until === null ? [] : [endOf(options.until, now)]),
    ...(options.maxDurationMs === null ? [] : [now + options.maxDurationMs]),
  ];
  return times.length === 0 ? null : Math.min(...times);
}

function endOf(until: string, now: number): number {
  return until.includes("T") ? Date.parse(until) : nextTimeOfDay(until, now);
}

/** The next moment after `now` at which clocks here show `HH:MM`. */
function nextTimeOfDay(time: string, now: number): number {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  const date = new Date(now);
  date.setHours(hours, minutes, 0, 0);
  if (date.getTime() <= now) {
    // Set again after the day: on the day of a clock change 24 hours are not a day.
    date.setDate(date.getDate() + 1);
    date.setHours(hours, minutes, 0, 0);
  }
  return date.getTime();
}
