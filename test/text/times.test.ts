import { afterEach, expect, test } from "vitest";
import { localMinute, localTime } from "../../src/text/times.js";

afterEach(() => {
  process.env["TZ"] = "UTC";
});

test.each([
  ["UTC", "2026-11-23 18:09", "UTC"],
  ["Europe/Berlin", "2026-11-23 19:09", "CET"],
  ["America/New_York", "2026-11-23 13:09", "GMT-5"],
])("times are told in the zone of the machine: %s", (zone, minute, name) => {
  process.env["TZ"] = zone;
  const at = Date.UTC(2026, 10, 23, 18, 9, 30);
  expect(localMinute(at)).toBe(minute);
  expect(localTime(at)).toBe(`${minute} ${name}`);
});
