import { describe, expect, test } from "vitest";
import {
  DurationEstimates,
  durationEstimateOf,
  observationsMax,
  priorFrom,
  priorOf,
} from "../../../src/core/pace/pace.js";

const typical = ({ mean }: { mean: number }) => Math.exp(mean);
const times = (count: number, act: (index: number) => void) => {
  for (let index = 0; index < count; index++) act(index);
};

test("a model of a category that nobody knows is guessed at half a minute, and of others by their category", () => {
  const guess = (category: string) => Math.round(typical(durationEstimateOf(priorOf(category), [], [])));
  expect(["image", "audio", "video", "hologram"].map(guess)).toEqual([10_000, 20_000, 120_000, 30_000]);
  expect(new DurationEstimates().of("never heard of")).toEqual(durationEstimateOf(priorOf(""), [], []));
});

test("what the service tells of a model counts as a few generations, and as a history", () => {
  const told = [
    {
      atOnce: 1,
      aheadMs: 0,
      usualMs: new Map([
        ["paint", 30_000],
        ["animate", null],
      ]),
    },
  ];
  const estimates = new DurationEstimates(told);
  estimates.register("paint", "paint", "image");
  estimates.register("animate", "animate", "video");
  expect(typical(estimates.of("paint"))).toBeCloseTo(30_000, 3);
  expect(estimates.of("paint").finished).toBe(1);
  expect(Math.round(typical(estimates.of("animate")))).toBe(120_000);
  expect(estimates.of("animate").finished).toBe(0);
  times(20, () => estimates.finished("paint", 0, 60_000));
  expect(typical(estimates.of("paint"))).toBeGreaterThan(50_000);
});

describe("a group of a model", () => {
  function painted(): DurationEstimates {
    const estimates = new DurationEstimates();
    estimates.register("small", "paint", "image");
    estimates.register("large", "paint", "image");
    estimates.register("film", "animate", "video");
    return estimates;
  }

  test("without generations of its own is guessed from the model's other groups, and not from other models", () => {
    const estimates = painted();
    times(20, (item) => estimates.finished("small", item, 40_000));
    expect(typical(estimates.of("large")) / 40_000).toBeCloseTo(1, 1);
    expect(estimates.of("large").finished).toBe(20);
    expect(typical(estimates.of("film"))).toBeCloseTo(120_000);
    expect(estimates.of("film").finished).toBe(0);
  });

  test("with generations of its own goes by these", () => {
    const estimates = painted();
    times(20, (item) => estimates.finished("small", item, 5_000));
    times(20, (item) => estimates.finished("large", item, 60_000));
    expect(typical(estimates.of("small"))).toBeLessThan(10_000);
    expect(typical(estimates.of("large"))).toBeGreaterThan(45_000);
    const whole = durationEstimateOf(
      priorOf("image"),
      [...Array<number>(20).fill(5_000), ...Array<number>(20).fill(60_000)],
      [],
    );
    expect(estimates.of("large")).toEqual({
      ...durationEstimateOf(priorFrom(whole), Array(20).fill(60_000), []),
      finished: 40,
    });
  });

  test("that is the only one of its model goes by the category's guess and its own generations", () => {
    const estimates = painted();
    estimates.finished("film", 1, 90_000);
    expect(estimates.of("film")).toEqual(durationEstimateOf(priorOf("video"), [90_000], []));
  });

  test("is what it was when it was introduced first", () => {
    const estimates = painted();
    times(5, (item) => estimates.finished("film", item, 90_000));
    estimates.register("film", "paint", "image");
    expect(typical(estimates.of("film"))).toBeGreaterThan(80_000);
  });

  test("grows with the age of what is not finished, until that ends with or without a known duration", () => {
    const estimates = painted();
    const before = estimates.of("film");
    estimates.unfinished("film", 1, 600_000);
    const waiting = estimates.of("film");
    expect(typical(waiting)).toBeGreaterThan(typical(before));
    estimates.unfinished("film", 1, 900_000);
    expect(typical(estimates.of("film"))).toBeGreaterThan(typical(waiting));
    estimates.forget("film", 1);
    expect(estimates.of("film")).toEqual(before);
    estimates.unfinished("film", 2, 600_000);
    estimates.finished("film", 2, 650_000);
    expect(estimates.of("film")).toEqual(durationEstimateOf(priorOf("video"), [650_000], []));
  });

  test("learns of its model's other groups as they go on", () => {
    const estimates = painted();
    estimates.finished("small", 1, 40_000);
    const before = typical(estimates.of("large"));
    times(10, (item) => estimates.finished("small", item, 80_000));
    expect(typical(estimates.of("large"))).toBeGreaterThan(before);
  });

  test("goes by its last generations, of which there may be any number", () => {
    const estimates = painted();
    times(observationsMax, (item) => estimates.finished("film", item, 30_000));
    times(observationsMax, (item) => estimates.finished("film", item, 300_000));
    expect(estimates.of("film")).toEqual(
      durationEstimateOf(priorOf("video"), Array(observationsMax).fill(300_000), []),
    );
  });

  test("that was never introduced takes no notice of what is told of it", () => {
    const estimates = painted();
    const before = estimates.of("other");
    estimates.finished("other", 1, 5);
    estimates.unfinished("other", 2, 900_000);
    estimates.forget("other", 2);
    expect(estimates.of("other")).toEqual(before);
  });
});
