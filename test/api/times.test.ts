import { afterEach, expect, test } from "vitest";
import { serviceTime } from "../../src/api/times.js";

afterEach(() => {
  process.env["TZ"] = "UTC";
});

test.each(["Asia/Tokyo", "America/New_York"])(
  "a time of the service without a zone is UTC, wherever this machine is: %s",
  (zone) => {
    process.env["TZ"] = zone;
    const at = Date.UTC(2026, 10, 27, 13, 0, 30);
    expect(serviceTime("2026-11-27T13:00:30")).toBe(at);
    expect(serviceTime("2026-11-27 13:00:30")).toBe(at);
    expect(serviceTime("2026-11-27T13:00:30.250000")).toBe(at + 250);
    expect(serviceTime("2026-11-27T13:00:30Z")).toBe(at);
    expect(serviceTime("2026-11-27T22:00:30+09:00")).toBe(at);
    expect(serviceTime("2026-11-27")).toBe(Date.UTC(2026, 10, 27));
    expect(serviceTime("soon")).toBeNaN();
  },
);
