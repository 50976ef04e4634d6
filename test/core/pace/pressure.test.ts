import { expect, test } from "vitest";
import { certainty, type Pressure } from "../../../src/core/pace/pressure.js";

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
