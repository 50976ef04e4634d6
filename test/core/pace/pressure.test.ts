import { describe, expect, test } from "vitest";
import type { DurationEstimate } from "../../../src/core/pace/pace.js";
import type { OpenTask } from "../../../src/core/pace/poll.js";
import {
  certainty,
  isDayShort,
  isTail,
  type Pressure,
  pressureOf,
  type Work,
} from "../../../src/core/pace/pressure.js";
import type { Quota } from "../../../src/core/quota/quota.js";

const short: Pressure = { most: 0.976, holdMs: 14_000, isDayShort: false, isShort: true, isPlenty: false };
const chance = (spread: number, pressure = short) =>
  certainty(pressure, { mean: Math.log(10_000), spread, finished: 30 });

test("less is asked of a model whose times are spread wide, and far less of the widest", () => {
  expect([0, 0.35, 0.67, 1].map((spread) => Number(chance(spread).toFixed(4)))).toEqual([
    0.976, 0.9662, 0.9424, 0.916,
  ]);
});

test("no less than 0.85 is asked while places are short, and all that there is where the day's are", () => {
  expect(chance(3)).toBe(0.85);
  expect(chance(1, { ...short, most: 0.99, isDayShort: true })).toBe(0.99);
  expect(chance(1, { ...short, most: 0.3 })).toBe(0.3);
});

test("less is asked of a model that takes long, unless its times are spread wide as well", () => {
  const long = (spread: number) => certainty(short, { mean: Math.log(100_000), spread, finished: 30 });
  const quick = (spread: number) => certainty(short, { mean: Math.log(5_000), spread, finished: 30 });
  expect(long(0)).toBeCloseTo(0.976 - 0.016 * Math.log(10), 6);
  expect(quick(0)).toBe(0.976);
  expect(long(1)).toBe(quick(1));
  expect(long(1.2)).toBe(quick(1.2));
});

const now = Date.UTC(2026, 0, 1);
const slow: DurationEstimate = { mean: Math.log(100_000), spread: 0.1, finished: 30 };
const quick: DurationEstimate = { mean: Math.log(2_000), spread: 0.1, finished: 30 };

function quota(minute: [number | null, number], day: [number | null, number] = [10_000, 0]): Quota {
  const window = ([limit, used]: [number | null, number]) => ({
    limit,
    used,
    nextFreeAt: now,
    nextReleaseAt: null,
  });
  return {
    minute: window(minute),
    day: window(day),
    releases: [],
    pacing: { spacingMs: 0, nextAt: 0 },
    owedElsewhere: 0,
    blockedUntil: null,
  };
}
const work = (change: Partial<Work> = {}): Work => ({
  tasks: [],
  waiting: [],
  pace: (group) => (group === "slow" ? slow : quick),
  quota: quota([60, 0]),
  now,
  ...change,
});
const open = (count: number, change: Partial<OpenTask> = {}): OpenTask[] =>
  Array.from({ length: count }, (_, id) => ({
    id,
    group: "quick",
    kind: "processing",
    since: now,
    seenAt: null,
    nextAt: 0,
    ...change,
  }));

describe("the day is too short", () => {
  const day = (left: number, change: Partial<Work> = {}) =>
    work({
      quota: quota([60, 0], [1_000, 1_000 - left]),
      waiting: [{ group: "quick", items: 100 }],
      ...change,
    });

  test("for a submit and a poll of each item, with one in fifty that finds nothing, and a poll of each task", () => {
    expect([202, 201].map((left) => isDayShort(day(left)))).toEqual([false, true]);
    expect([212, 211].map((left) => isDayShort(day(left, { tasks: open(10) })))).toEqual([false, true]);
  });

  test("for what other runs of the account need as well", () => {
    const shared = (left: number) => {
      const own = day(left);
      return isDayShort({ ...own, quota: { ...own.quota, owedElsewhere: 5 } });
    };
    expect([207, 206].map(shared)).toEqual([false, true]);
  });

  test("then a poll has to be nearly certain, unless the user wants results early", () => {
    expect(pressureOf(day(100), null)).toMatchObject({
      most: 0.99,
      isDayShort: true,
      isShort: true,
      isPlenty: false,
    });
    expect(pressureOf(day(100), "frugal")).toMatchObject({ isDayShort: true });
    expect(pressureOf(day(100), "eager")).toMatchObject({ isDayShort: false });
  });
});

describe("a poll has to be as likely to succeed", () => {
  test("as the least, where requests have no limit or are plentiful", () => {
    const plenty = { most: 0.17, isDayShort: false, isShort: false, isPlenty: true };
    expect(
      pressureOf(
        work({ quota: quota([null, 0], [null, 0]), waiting: [{ group: "quick", items: 999 }] }),
        null,
      ),
    ).toMatchObject(plenty);
    expect(pressureOf(work({ tasks: open(10) }), null)).toMatchObject(plenty);
    expect(pressureOf(work(), null)).toMatchObject(plenty);
  });

  test("as many polls as there are for the slots left by the submits", () => {
    expect(pressureOf(work({ tasks: open(30) }), null).most).toBe(0.5);
    expect(pressureOf(work({ waiting: [{ group: "quick", items: 20 }] }), null).most).toBe(0.5);
    expect(pressureOf(work({ tasks: open(15), waiting: [{ group: "quick", items: 10 }] }), null).most).toBe(
      0.5,
    );
  });

  test("as the profile allows, where slots are short", () => {
    const full = (profile: Parameters<typeof pressureOf>[1]) =>
      pressureOf(work({ tasks: open(60) }), profile);
    expect(full(null)).toMatchObject({ most: 0.976, holdMs: 14_000, isShort: true, isPlenty: false });
    expect(full("balanced")).toEqual(full(null));
    expect(full("eager")).toMatchObject({ most: 0.87, holdMs: 20_000 });
    expect(full("frugal")).toMatchObject({ most: 0.99, holdMs: 0 });
    expect(pressureOf(work({ tasks: open(59) }), null).isShort).toBe(false);
  });

  test("as the tightest time wants it: far needs leave near slots unused, and near needs do not wait for far slots", () => {
    const far = (change: Partial<Work>) => pressureOf(work(change), null).most;
    // In two minutes there are two more minutes' slots.
    expect(far({ waiting: [{ group: "slow", items: 30 }] })).toBeCloseTo(30 / 90, 6);
    expect(far({ tasks: open(30), waiting: [{ group: "slow", items: 6 }] })).toBe(0.5);
    expect(far({ tasks: open(60, { group: "slow" }) })).toBeCloseTo(60 / 120, 6);
    expect(far({ tasks: [...open(6, { group: "slow" }), ...open(30)] })).toBe(0.5);
  });

  test("as little as can be for overdue tasks alone, which are waited for in no case", () => {
    expect(pressureOf(work({ tasks: open(60, { kind: "overdue" }) }), null).isPlenty).toBe(true);
    expect(pressureOf(work({ tasks: open(60, { kind: "expired" }) }), null).isShort).toBe(true);
  });

  test("as can be, where only the minute, the day or a pacing limits the requests", () => {
    expect(pressureOf(work({ quota: quota([60, 0], [null, 0]), tasks: open(30) }), null).most).toBe(0.5);
    expect(pressureOf(work({ quota: quota([null, 0], [100, 0]), tasks: open(50) }), null).most).toBe(0.5);
    const paced = { ...quota([null, 0], [null, 0]), pacing: { spacingMs: 1_000, nextAt: 0 } };
    expect(pressureOf(work({ quota: paced, tasks: open(11) }), null)).toMatchObject({ most: 0.976 });
  });

  test("as half a slot would be used, where none is left", () => {
    expect(pressureOf(work({ quota: quota([60, 60]), tasks: open(1) }), null)).toMatchObject({
      isShort: true,
    });
  });
});

describe("the end of a run is near", () => {
  const left = (used: number, change: Partial<Work> = {}) =>
    isTail(
      work({ quota: quota([60, used]), waiting: [{ group: "quick", items: 3 }], tasks: open(2), ...change }),
    );

  test("when the slots of the slowest generation's time suffice for all that is left", () => {
    expect([left(55), left(56)]).toEqual([true, false]);
    const slowest = (used: number) => left(used, { waiting: [{ group: "slow", items: 3 }] });
    expect([slowest(58), slowest(59)]).toEqual([true, false]);
  });

  test("but not when nothing is left to submit", () => {
    expect(left(0, { waiting: [] })).toBe(false);
    expect(left(0, { waiting: [{ group: "quick", items: 0 }] })).toBe(false);
  });

  test("nor by what nobody knows of a model: three times its usual time is the most", () => {
    const unknown = { mean: Math.log(10_000), spread: 3, finished: 0 };
    expect(left(56, { pace: () => unknown })).toBe(false);
    expect(left(56, { pace: () => ({ ...unknown, mean: Math.log(21_000) }) })).toBe(true);
  });
});
