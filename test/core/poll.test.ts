import { expect, test } from "vitest";
import { overdueInterval, pollInterval, windowPassed } from "../../src/core/poll.js";

const minute = 60_000;

test("looks begin at two seconds and grow to ten", () => {
  expect([0, 1, 2, 3, 4, 20].map(pollInterval)).toEqual([2_000, 3_000, 4_500, 6_750, 10_000, 10_000]);
});

test("after ten minutes a task is overdue, also where the clock was set back", () => {
  expect(windowPassed(0, 10 * minute - 1)).toBe(false);
  expect(windowPassed(0, 10 * minute)).toBe(true);
  expect(windowPassed(11 * minute, 0)).toBe(true);
});

test("P12: overdue tasks are looked at rarely, and all together take at most a tenth of the day", () => {
  expect(overdueInterval(0, { tasks: 1, perDay: null })).toBe(5 * minute);
  expect(overdueInterval(100 * minute, { tasks: 50, perDay: null })).toBe(20 * minute);
  for (const [tasks, perDay] of [
    [1, 1_000],
    [400, 10_000],
    [5, 13],
  ] as const) {
    const looksADay = (tasks * 24 * 60 * minute) / overdueInterval(0, { tasks, perDay });
    expect(looksADay).toBeLessThanOrEqual(perDay / 10 + 1e-9);
  }
});
