import { expect, test } from "vitest";
import { timeLeftMs } from "../../../src/core/pace/time-left.js";

const forecastMs = 100_000;

test.each([
  ["nothing is done yet: what is left of the forecast", { planned: 10 }, 40_000, 60_000],
  ["it is ahead: the share of the forecast that is open", { archived: 4, processing: 6 }, 20_000, 60_000],
  ["it is in step with the forecast", { archived: 3, ready: 7 }, 30_000, 70_000],
  ["it is behind: the pace so far, if that is more", { archived: 6, submitting: 4 }, 90_000, 36_000],
  ["the forecast has passed", { archived: 6, failed: 2, planned: 2 }, 500_000, 100_000],
  ["nothing is done when all should be: nothing is known", { planned: 10 }, 100_000, 0],
  ["others follow what is open", { archived: 5, planned: 1, blocked: 4 }, 10_000, 50_000],
  ["dropped items are not wanted any more", { archived: 5, planned: 5, dropped: 90 }, 10_000, 50_000],
])("%s", (_, counts, elapsedMs, left) => {
  expect(timeLeftMs(counts, forecastMs, elapsedMs)).toBeCloseTo(left, 3);
});

test.each([
  ["there is no forecast", { planned: 10 }, null],
  ["a person has to decide", { archived: 5, held: 3, blocked: 2 }, forecastMs],
  ["all is done", { archived: 5 }, forecastMs],
])("is not known if %s", (_, counts, forecast) => {
  expect(timeLeftMs(counts, forecast, 10_000)).toBeNull();
});
