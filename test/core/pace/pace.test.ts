import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ageWhen,
  chanceDone,
  durationEstimateOf,
  durationOf,
  hazard,
  priorFrom,
  priorOf,
  tailPoint,
  upperTail,
} from "../../../src/core/pace/pace.js";
import { chance } from "../../sim/chance.js";

const median = (ms: number) => Math.log(ms);
const typical = ({ mean }: { mean: number }) => Math.exp(mean);

/** Durations of a model: so long in the middle, spread so wide. */
function durations(count: number, medianMs: number, sigma: number, seed = 1): number[] {
  const lot = chance(seed, "durations", medianMs);
  return Array.from({ length: count }, () => medianMs * Math.exp(sigma * tailPoint(1 - lot.next())));
}

describe("the normal distribution", () => {
  test("known points, far out too", () => {
    expect(upperTail(0)).toBeCloseTo(0.5, 6);
    expect(upperTail(1.6448536)).toBeCloseTo(0.05, 6);
    expect(upperTail(-1.6448536)).toBeCloseTo(0.95, 6);
    expect(upperTail(10) / 7.619853e-24).toBeCloseTo(1, 5);
    expect(hazard(10)).toBeCloseTo(10.0981, 3);
  });

  test("the inverse finds back", () => {
    fc.assert(
      fc.property(fc.double({ min: -6, max: 28, noNaN: true }), (z) => {
        expect(tailPoint(upperTail(z))).toBeCloseTo(z, 3);
      }),
    );
  });
});

describe("a pace", () => {
  test("with nothing known is the guess of its category, with a wide spread", () => {
    const pace = durationEstimateOf(priorOf("video"), [], []);
    expect(typical(pace)).toBeCloseTo(120_000);
    expect(pace.spread).toBeGreaterThan(0.8);
    expect(durationEstimateOf(priorOf("hologram"), [], []).finished).toBe(0);
  });

  test("is found after a few results, however wrong the estimate was", () => {
    const pace = durationEstimateOf(priorOf("image"), durations(5, 90_000, 0.3), []);
    expect(typical(pace)).toBeGreaterThan(60_000);
    expect(typical(pace)).toBeLessThan(110_000);
  });

  test("one generation that took an hour moves it little", () => {
    const usual = durations(30, 10_000, 0.3);
    const before = durationEstimateOf(priorOf("image"), usual, []);
    const after = durationEstimateOf(priorOf("image"), [...usual, 3_600_000], []);
    expect(typical(after) / typical(before)).toBeLessThan(1.35);
  });

  test("a model that has become twice as slow is believed after eight results", () => {
    const pace = durationEstimateOf(
      priorOf("image"),
      [...durations(60, 10_000, 0.2), ...durations(8, 20_000, 0.2)],
      [],
    );
    expect(typical(pace)).toBeGreaterThan(17_000);
  });

  test("tasks that are not finished yet speak too: it is longer than they have lasted", () => {
    const pace = durationEstimateOf(priorOf("image"), [], [60_000, 60_000, 60_000]);
    expect(typical(pace)).toBeGreaterThan(60_000);
  });

  test("params of which nothing is known are guessed from the model", () => {
    const model = durationEstimateOf(priorOf("image"), durations(20, 40_000, 0.2), []);
    expect(typical(durationEstimateOf(priorFrom(model), [], []))).toBeCloseTo(typical(model), -2);
    expect(typical(durationEstimateOf(priorFrom(model), durations(20, 10_000, 0.2), []))).toBeLessThan(
      16_000,
    );
  });

  test("the age at which it is done with a chance, and the chance at that age, agree", () => {
    const pace = { mean: median(10_000), spread: 0.5, finished: 30 };
    fc.assert(
      fc.property(
        fc.double({ min: 0.05, max: 0.99, noNaN: true }),
        fc.integer({ min: 0, max: 60_000 }),
        (p, seen) => {
          const age = ageWhen(pace, p, seen);
          expect(age).toBeGreaterThanOrEqual(seen);
          expect(chanceDone(pace, age, seen)).toBeCloseTo(p, 3);
        },
      ),
    );
  });
});

describe("an estimate is the fit of a normal distribution to the logarithms", () => {
  const prior = priorOf("image");
  const log = Math.log;

  /** Mean and spread of weighted values and the prior. */
  function fitted(values: readonly { value: number; weight: number; variance?: number }[]) {
    const weight = values.reduce((sum, one) => sum + one.weight, prior.meanWeight);
    const sum = values.reduce((all, one) => all + one.weight * one.value, prior.meanWeight * prior.mean);
    const mean = sum / weight;
    const squares = values.reduce(
      (all, one) => all + one.weight * (one.value - mean) ** 2 + (one.variance ?? 0),
      prior.spreadWeight * prior.spread ** 2,
    );
    return { mean, weight, spread: Math.sqrt(squares / (prior.spreadWeight + weight - prior.meanWeight)) };
  }
  const predicted = ({ mean, weight, spread }: ReturnType<typeof fitted>) => ({
    mean,
    spread: spread * Math.sqrt(1 + 1 / weight),
  });

  test("with the prior as a quarter of one, and each older generation for a little less", () => {
    const found = durationEstimateOf(prior, [8_000, 30_000, 12_000], []);
    const weights = [2 ** (-2 / 30), 2 ** (-1 / 30), 1];
    const values = [8_000, 30_000, 12_000].map((ms, index) => ({
      value: log(ms),
      weight: weights[index] ?? 0,
    }));
    const expected = predicted(fitted(values));
    expect(found.mean).toBeCloseTo(expected.mean, 9);
    expect(found.spread).toBeCloseTo(expected.spread, 9);
    expect(found.finished).toBe(3);
  });

  test("with unfinished ones for what can be expected of them", () => {
    /** Mean and variance of a normal distribution above a value, by sums. */
    const above = (mean: number, spread: number, least: number) => {
      const step = spread / 2_000;
      let [mass, first, second] = [0, 0, 0];
      for (let value = least + step / 2; value < Math.max(least, mean) + 10 * spread; value += step) {
        const density = Math.exp(-(((value - mean) / spread) ** 2) / 2);
        mass += density;
        first += density * value;
        second += density * value ** 2;
      }
      return { value: first / mass, weight: 1, variance: second / mass - (first / mass) ** 2 };
    };
    for (const [done, age] of [
      [9_000, 15_000],
      [9_000, 3_000],
      [20_000, 60_000],
    ] as const) {
      const values = [{ value: log(done), weight: 1 }];
      let fit = fitted(values);
      for (let round = 0; round < 3; round++)
        fit = fitted([...values, above(fit.mean, fit.spread, log(age))]);
      const found = durationEstimateOf(prior, [done], [age]);
      expect(found.mean).toBeCloseTo(predicted(fit).mean, 3);
      expect(found.spread).toBeCloseTo(predicted(fit).spread, 3);
    }
  });

  test("from the last change on, if six generations or more lie on either side", () => {
    const values = (before: number, after: number) => [
      ...Array<number>(before).fill(10_000),
      ...Array<number>(after).fill(60_000),
    ];
    const mean = (ms: number[]) => durationEstimateOf(prior, ms, []).mean;
    expect(mean(values(20, 6))).toBe(mean(values(0, 6)));
    expect(mean(values(6, 20))).toBe(mean(values(0, 20)));
    // Where they are fewer, the sixth one belongs to them.
    expect(mean(values(20, 5))).toBe(mean(values(1, 5)));
    expect(mean(values(5, 20))).toBe(mean(values(0, 19)));
  });

  test("of which a model's is the prior of its groups, for four generations at most", () => {
    const weight = (finished: number) => priorFrom({ mean: 9, spread: 0.3, finished }).meanWeight;
    expect([0, 1, 4, 90].map(weight)).toEqual([0.25, 1.25, 4.25, 4.25]);
  });
});

test("a task that was just seen unfinished cannot have finished before", () => {
  const pace = { mean: median(10_000), spread: 0.5, finished: 30 };
  expect([chanceDone(pace, 5_000, 10_000), chanceDone(pace, 10_000, 10_000)]).toEqual([0, 0]);
  expect(tailPoint(0)).toBe(30);
});

describe("how long a task took", () => {
  const at = (ms: number) => new Date(ms).toISOString();
  const seen = { sentAt: 1_000_000, unfinishedAt: 1_020_000, seenAt: 1_060_000 };

  test("comes from the service's own times, however late it is polled and whatever its clock says", () => {
    expect(durationOf({ createdAt: at(5_000), completedAt: at(30_000) }, seen)).toBe(25_000);
  });

  test.each([
    ["missing", "", null],
    ["no times", "yesterday", "today"],
    ["the wrong way round", at(90_000), at(0)],
    ["longer than it can have been", at(0), at(9_000_000)],
    ["done before it was seen unfinished", at(0), at(1_000)],
  ])("is estimated from what was seen when they are %s", (_, createdAt, completedAt) => {
    expect(durationOf({ createdAt, completedAt }, seen)).toBe(40_000);
  });

  test("may differ by five seconds from what was seen, because answers take a while", () => {
    const took = (ms: number) => durationOf({ createdAt: at(0), completedAt: at(ms) }, seen);
    expect([15_000, 14_999].map(took)).toEqual([15_000, 40_000]);
    expect([65_000, 65_001].map(took)).toEqual([65_000, 40_000]);
  });

  test("is at least a millisecond, also of one that was there at once", () => {
    const once = { sentAt: 1_000_000, unfinishedAt: null, seenAt: 1_000_001 };
    expect(durationOf({ createdAt: at(5_000), completedAt: at(5_000) }, once)).toBe(1);
    expect(durationOf({ createdAt: "", completedAt: null }, { ...once, seenAt: 1_010_000 })).toBe(5_000);
  });

  test.each([
    ["it was seen before it was sent", { unfinishedAt: null, seenAt: 999_999 }],
    ["it was seen when it was sent", { unfinishedAt: null, seenAt: 1_000_000 }],
    ["it was unfinished before it was sent", { unfinishedAt: 999_999, seenAt: 1_060_000 }],
    ["it was unfinished after it was done", { unfinishedAt: 1_060_001, seenAt: 1_060_000 }],
  ])("is not known if %s, by a clock that was set", (_, wrong) => {
    expect(durationOf({ createdAt: at(0), completedAt: at(30_000) }, { ...seen, ...wrong })).toBeNull();
  });

  test("is known if it was last seen unfinished just when it was done", () => {
    const same = { ...seen, unfinishedAt: 1_060_000 };
    expect(durationOf({ createdAt: at(0), completedAt: at(60_000) }, same)).toBe(60_000);
    expect(durationOf({ createdAt: "", completedAt: null }, { ...seen, unfinishedAt: 1_000_000 })).toBe(
      30_000,
    );
  });

  test("is not known after the clock was put back", () => {
    const back = { ...seen, seenAt: 900_000 };
    expect(durationOf({ createdAt: at(5_000), completedAt: at(30_000) }, back)).toBeNull();
  });
});
