import fc from "fast-check";
import { expect, test } from "vitest";
import { backoffMs, retryAfterMs, silenceMs } from "../../src/core/retry.js";

test("P11: Retry-After in seconds and as a date is obeyed in full, relative to the response's own date", () => {
  const now = Date.UTC(2026, 0, 1);
  expect(retryAfterMs({ "retry-after": "90" }, now)).toBe(90_000);
  const wrongClock = {
    date: "Thu, 01 Jan 1970 00:00:00 GMT",
    "retry-after": "Thu, 01 Jan 1970 01:00:00 GMT",
  };
  expect(retryAfterMs(wrongClock, now)).toBe(3_600_000);
  expect(retryAfterMs({ "retry-after": new Date(now + 5_000).toUTCString() }, now)).toBe(5_000);
  expect(retryAfterMs({ "retry-after": "soon" }, now)).toBeNull();
  expect(retryAfterMs({}, now)).toBeNull();
});

test("P11: any whole number of seconds is obeyed", () => {
  fc.assert(
    fc.property(fc.nat(10_000_000), (seconds) => {
      expect(retryAfterMs({ "retry-after": ` ${seconds} ` }, 0)).toBe(seconds * 1_000);
    }),
  );
});

test("P11: without Retry-After the silence is 1, 2, 5, 15, 60 minutes and stays there", () => {
  expect([1, 2, 3, 4, 5, 6, 50].map((strike) => silenceMs(strike) / 60_000)).toEqual([
    1, 2, 5, 15, 60, 60, 60,
  ]);
});

test("waits between failures double up to a minute", () => {
  expect([1, 2, 3, 6, 7, 100].map(backoffMs)).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
});
