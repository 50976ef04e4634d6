import { describe, expect, test } from "vitest";
import type { DurationEstimate } from "../../../src/core/pace/pace.js";
import {
  leftMs,
  type OpenTask,
  overdueInterval,
  pollAt,
  pollInterval,
  pollSpacing,
  windowPassed,
} from "../../../src/core/pace/poll.js";

const minute = 60_000;
const now = Date.UTC(2026, 0, 1);
const pace: DurationEstimate = { mean: Math.log(30_000), spread: 0.3, finished: 20 };
const task = (change: Partial<OpenTask>): OpenTask => ({
  id: 1,
  group: "a",
  kind: "processing",
  since: now,
  seenAt: null,
  nextAt: 0,
  ...change,
});

test("polls without a result start at two seconds and grow to ten, and so does the least time between two", () => {
  expect([0, 1, 2, 3, 4, 20].map(pollInterval)).toEqual([2_000, 3_000, 4_500, 6_750, 10_000, 10_000]);
  expect([0, 70_000, 70_001, 1_000_000].map(pollSpacing)).toEqual([2_000, 5_000, 5_001, 10_000]);
});

describe("when a poll is due", () => {
  test("the surer it is to be, the later", () => {
    const ages = [0.2, 0.5, 0.95].map((chance) => pollAt(task({}), pace, chance, now).at - now);
    expect(ages).toEqual(ages.toSorted((a, b) => a - b));
    expect(ages[1]).toBeCloseTo(30_000, -2);
  });

  test("a task that was just found unfinished is not polled before the time that was set", () => {
    const polled = task({ since: now - 90_000, seenAt: now, nextAt: now + 9_000 });
    expect(pollAt(polled, pace, 0.2, now).at).toBe(now + 9_000);
  });

  test("after an early poll, at four times its age at the latest, however slow the model is thought to be", () => {
    const slow: DurationEstimate = { mean: Math.log(3_600_000), spread: 0.2, finished: 20 };
    const polled = task({ since: now - 40_000, seenAt: now });
    expect(pollAt(polled, slow, 0.95, now).at).toBe(now + 120_000);
    expect(pollAt(task({}), slow, 0.95, now).at).toBe(now + 10 * minute);
  });

  test("P20: after the clock was put back it is due when its time was set, not when its age comes round again", () => {
    expect(pollAt(task({ since: now + 3_600_000, nextAt: now - 1 }), pace, 0.95, now).at).toBe(now - 1);
  });
});

test("a task whose turn is to come is polled when it should be done", () => {
  const waiting = task({ since: now + 3_600_000, nextAt: now + 100_000, turn: { isLast: false } });
  expect(pollAt(waiting, pace, 0.5, now).at).toBeCloseTo(now + 3_630_000, -2);
});

test("after ten minutes a task is overdue, also where the clock was set back", () => {
  expect(windowPassed(10 * minute - 1)).toBe(false);
  expect(windowPassed(10 * minute)).toBe(true);
  expect(windowPassed(-11 * minute)).toBe(true);
});

describe("P12: overdue tasks", () => {
  test("are polled when they are a twentieth older, and at least every hour if there is no limit", () => {
    expect(overdueInterval(10 * minute, { tasks: 1, perDay: null })).toBe(minute / 2);
    expect(overdueInterval(100 * minute, { tasks: 1, perDay: null })).toBe(5 * minute);
    expect(overdueInterval(6_000 * minute, { tasks: 1, perDay: null })).toBe(60 * minute);
  });

  test("of a clock that was set back are polled less often the further it was set", () => {
    const looksWithin = (day: number) => {
      let looks = 0;
      for (let at = -4 * day; at < 4 * day; looks++) at += overdueInterval(at, { tasks: 1, perDay: null });
      return looks;
    };
    // Every hour while it is far away, and a twentieth nearer or farther each time below that: a hundred on either side.
    expect(looksWithin(24 * 60 * minute)).toBeLessThan(2 * (4 * 24 + 100));
  });

  test.each([
    [1, 1_000],
    [3, 1_000],
    [40, 1_000],
    [400, 10_000],
    [5, 13],
  ])("take at most a tenth of the day together: %i of them, %i requests", (tasks, perDay) => {
    let looks = 0;
    for (let age = 10 * minute; age < 24 * 60 * minute; looks++)
      age += overdueInterval(age, { tasks, perDay });
    // The last look of each may still fall into the day.
    expect((looks - 1) * tasks).toBeLessThanOrEqual(perDay / 10);
  });
});

describe("a poll succeeds", () => {
  const chance = (change: Partial<OpenTask>, at = now) => pollAt(task(change), pace, 0.5, at).chance;

  test("as likely as tasks of that age are finished, given that it was unfinished before", () => {
    expect(chance({ since: now - 30_000 })).toBeCloseTo(0.5, 6);
    expect(chance({ since: now - 60_000 })).toBeGreaterThan(0.95);
    expect(chance({ since: now - 30_000, seenAt: now - 1_000 })).toBeLessThan(0.2);
  });

  test("surely for expired addresses, and last of all for overdue tasks", () => {
    expect([chance({ kind: "expired" }), chance({ kind: "overdue" })]).toEqual([1, 0]);
    expect(pollAt(task({ kind: "overdue", nextAt: now + 7 }), pace, 0.5, now).at).toBe(now + 7);
  });

  test("as likely as not, where the clock was set back since", () => {
    expect([chance({ since: now + 1 }), chance({ since: now - 60_000, seenAt: now + 1 })]).toEqual([
      0.5, 0.5,
    ]);
  });
});

test("a task that was seen early is polled again within ten seconds", () => {
  const slow: DurationEstimate = { mean: Math.log(3_600_000), spread: 0.2, finished: 20 };
  expect(pollAt(task({ since: now - 2_000, seenAt: now }), slow, 0.95, now).at).toBe(now + 10_000);
});

test("what is left of a task is the time until nine in ten of its kind are finished", () => {
  const nine = 30_000 * Math.exp(0.3 * 1.2815516);
  expect(leftMs(task({}), pace, now)).toBeCloseTo(nine, -1);
  expect(leftMs(task({ since: now - 10_000 }), pace, now)).toBeCloseTo(nine - 10_000, -1);
  expect(leftMs(task({ since: now - 600_000 }), pace, now)).toBe(0);
  // One that was unfinished after 50 seconds takes longer than most.
  const late = leftMs(task({ since: now - 50_000, seenAt: now }), pace, now);
  expect(late).toBeGreaterThan(15_000);
  expect(late).toBeLessThan(17_000);
});

test("P12: many overdue tasks are polled so rarely that they share a tenth of the day, every fortnight at least", () => {
  const among = (minutes: number, tasks: number, perDay: number) =>
    overdueInterval(minutes * minute, { tasks, perDay }) / minute;
  // Two and a half polls for each: one and a half in the first hour, and one in the rest of the day.
  expect(among(10, 40, 1_000)).toBeCloseTo(10 * (6 ** (1 / 1.5) - 1), 3);
  expect(among(60, 40, 1_000)).toBeCloseTo(60 * 24, 3);
  expect(among(60, 400, 100)).toBe(14 * 24 * 60);
});
