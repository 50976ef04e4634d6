import { expect, test } from "vitest";
import type { Forecast } from "../../src/core/pace/forecast.js";
import { comparedText, forecastText, timeText } from "../../src/report/forecast.js";

const forecast = (ms: number, larger: Forecast["larger"]): Forecast => ({
  requests: 17,
  ms,
  binds: "minute",
  larger,
});

test("a larger plan is named only when the time that is shown would be shorter", () => {
  const larger = (ms: number) => ({ plan: "Enterprise", ms });
  expect(timeText(forecast(11_000, larger(9_500)))).toBe("10s, limited by requests per minute");
  expect(timeText(forecast(60_000, larger(10_000)))).toBe(
    "1m, limited by requests per minute; on Enterprise (no limit) about 10s",
  );
});

test("a single request is told as one", () => {
  const one = { ...forecast(5_000, null), requests: 1 };
  expect(forecastText(one)).toMatch(/^about 1 request, 5s/);
  expect(comparedText(one, one)).toBe("1 request, 5s; it took 1 request, 5s");
});
