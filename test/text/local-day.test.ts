import { expect, test } from "vitest";
import { localDay, localMinute, localTime } from "../../src/text/times.js";

test("times and days have two digits for month, day, hour and minute", () => {
  const at = Date.UTC(2026, 2, 4, 5, 6, 59);
  expect(localDay(at)).toBe("2026-03-04");
  expect(localMinute(at)).toBe("2026-03-04 05:06");
  expect(localTime(at)).toBe("2026-03-04 05:06 UTC");
});
