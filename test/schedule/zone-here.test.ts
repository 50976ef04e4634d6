import { afterEach, expect, test } from "vitest";
import { zoneHere } from "../../src/schedule/due.js";

afterEach(() => {
  process.env["TZ"] = "UTC";
});

test.each([
  ["Europe/Berlin", "Europe/Berlin"],
  [":America/New_York", "America/New_York"],
])("the zone of a machine with TZ=%s is %s", (tz, zone) => {
  process.env["TZ"] = tz;
  expect(zoneHere()).toBe(zone);
});

test.each(["UTC0", "Mars/Base", ""])(
  "TZ=%j names no zone: a schedule needs --tz, which the message says",
  (tz) => {
    process.env["TZ"] = tz;
    expect(zoneHere).toThrow(/^--tz: expected a zone such as Europe\/Berlin or UTC, because .* TZ /);
  },
);
