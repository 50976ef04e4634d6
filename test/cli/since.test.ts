import { describe, expect, test } from "vitest";
import { since } from "../../src/options/values.js";

// Tests run in UTC.
const now = Date.UTC(2026, 10, 23, 7, 30);
const at = (text: string) => new Date(since(text)(now)).toISOString().slice(0, 16);

describe("a report begins", () => {
  test.each([
    ["yesterday", "2026-11-22T00:00"],
    ["today", "2026-11-23T00:00"],
    ["2026-11-20", "2026-11-20T00:00"],
    ["06:00", "2026-11-23T06:00"],
    ["18:00", "2026-11-22T18:00"],
    ["12h", "2026-11-22T19:30"],
    ["2d", "2026-11-21T07:30"],
  ])("%s: %s", (text, expected) => {
    expect(at(text)).toBe(expected);
  });

  test("at nothing that cannot be read", () => {
    for (const text of ["", "soon", "25:00", "2026-13-01", "12"])
      expect(() => since(text), text).toThrow(/expected/);
  });
});
