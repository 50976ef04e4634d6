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

  test("is not known after the clock was put back", () => {
    const back = { ...seen, seenAt: 900_000 };
    expect(durationOf({ createdAt: at(5_000), completedAt: at(30_000) }, back)).toBeNull();
  });
});
