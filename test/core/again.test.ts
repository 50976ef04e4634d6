import fc from "fast-check";
import { expect, test } from "vitest";
import { backoffMs, knowsStill, leastSilenceMs, retryAfterMs, silenceMs } from "../../src/core/again.js";

test("P11: Retry-After in seconds and as a date is obeyed up to a day, relative to the response's own date", () => {
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

test("P11: any whole number of seconds is obeyed, up to a day", () => {
  fc.assert(
    fc.property(fc.nat(86_400), (seconds) => {
      expect(retryAfterMs({ "retry-after": ` ${seconds} ` }, 0)).toBe(seconds * 1_000);
    }),
  );
});

test.each(["-5", "-86400", "1e3", "0x10", "5 seconds", "soon", "", "NaN", "Infinity"])(
  "P11: a Retry-After of %j says nothing, though some of these parse as dates",
  (value) => {
    expect(retryAfterMs({ "retry-after": value }, Date.UTC(2026, 0, 1))).toBeNull();
  },
);

test.each(["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"])(
  "P11: a date is read as HTTP writes it, and as it did: %s",
  (date) => {
    expect(retryAfterMs({ "retry-after": date }, Date.UTC(1994, 10, 6, 8, 49, 7))).toBe(30_000);
  },
);

test.each([
  "Sun Nov  6 08:49:37 1994",
  "in Sunday, 06 Nov 1994",
  "06 Nov 1994 08:49:37 GMT",
  "1994-11-06T08:49:37Z",
])("P11: a date in another form, or one that names no zone, says nothing: %s", (date) => {
  expect(retryAfterMs({ "retry-after": date }, 0)).toBeNull();
});

test("P11: part of a second is waited for, and after a day the service is asked again", () => {
  expect(retryAfterMs({ "retry-after": "1.5" }, 0)).toBe(1_500);
  expect(retryAfterMs({ "retry-after": "1.2501" }, 0)).toBe(1_251);
  expect(retryAfterMs({ "retry-after": "259200" }, 0)).toBe(86_400_000);
  expect(retryAfterMs({ "retry-after": "99999999999999999999" }, 0)).toBe(86_400_000);
});

test("P11: whatever the header says, the wait is none or a whole number of milliseconds up to a day", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (value, date) => {
      const ms = retryAfterMs({ "retry-after": value, date }, 0);
      if (ms === null) return;
      expect(Number.isSafeInteger(ms)).toBe(true);
      expect(ms).toBeGreaterThanOrEqual(0);
      expect(ms).toBeLessThanOrEqual(86_400_000);
    }),
  );
});

test("P11: who refuses whatever comes, and names a short time each time, is left alone for longer and longer", () => {
  const seconds = [1, 2, 3, 4, 5, 6, 7, 10, 50].map((strike) => leastSilenceMs(strike) / 1_000);
  expect(seconds).toEqual([1, 2, 4, 8, 16, 60, 120, 3_600, 3_600]);
});

test("P11: without Retry-After the silence is 1, 2, 5, 15, 60 minutes and stays there", () => {
  expect([1, 2, 3, 4, 5, 6, 50].map((strike) => silenceMs(strike) / 60_000)).toEqual([
    1, 2, 5, 15, 60, 60, 60,
  ]);
});

test("waits between failures double up to a minute", () => {
  expect([1, 2, 3, 6, 7, 100].map(backoffMs)).toEqual([1_000, 2_000, 4_000, 32_000, 60_000, 60_000]);
});

test("P1: a request is repeated only while the service surely knows its key, by the later end of the time", () => {
  const day = 86_400_000;
  const hour = 3_600_000;
  expect(knowsStill(7 * day, 0, { latest: 7 * day - hour - 1 })).toBe(true);
  expect(knowsStill(7 * day, 0, { latest: 7 * day - hour })).toBe(false);
  expect(knowsStill(hour, 0, { latest: 0 })).toBe(false);
});
