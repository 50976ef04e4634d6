import { describe, expect, test } from "vitest";
import {
  deadlineOf,
  defaultRunOptions,
  nothingToSubmit,
  withoutPastEnd,
} from "../../../src/core/next/options.js";

const now = Date.UTC(2026, 0, 1, 12, 30, 15, 500);
const hour = 3_600_000;
const until = (text: string | null, maxDurationMs: number | null = null) =>
  deadlineOf({ until: text, maxDurationMs }, now);

describe("submitting ends", () => {
  test("never, if no end was given", () => {
    expect(until(null)).toBeNull();
  });

  test("at an instant, also one that has passed", () => {
    expect(until("2026-01-01T14:00:00Z")).toBe(Date.UTC(2026, 0, 1, 14));
    expect(until("2025-12-31T14:00:00Z")).toBe(Date.UTC(2025, 11, 31, 14));
  });

  test("at the next moment at which clocks here show a time of day, to the second", () => {
    expect(until("13:05")).toBe(Date.UTC(2026, 0, 1, 13, 5));
    expect(until("12:30")).toBe(Date.UTC(2026, 0, 2, 12, 30));
    expect(until("00:00")).toBe(Date.UTC(2026, 0, 2));
    const exact = Date.UTC(2026, 0, 1, 8);
    expect(deadlineOf({ until: "08:00", maxDurationMs: null }, exact)).toBe(Date.UTC(2026, 0, 2, 8));
  });

  test("after a time, or at the earlier of two ends", () => {
    expect(until(null, 2 * hour)).toBe(now + 2 * hour);
    expect(until("13:30", 2 * hour)).toBe(Date.UTC(2026, 0, 1, 13, 30));
    expect(until("23:30", 2 * hour)).toBe(now + 2 * hour);
  });
});

test("a run that is continued forgets an instant that has passed, and keeps every other end", () => {
  const kept = (end: string | null) =>
    withoutPastEnd({ ...defaultRunOptions, sandbox: false, until: end }, now).until;
  expect(kept("2026-01-01T12:00:00Z")).toBeNull();
  expect(kept(new Date(now).toISOString())).toBeNull();
  expect(kept("2026-01-01T13:00:00Z")).toBe("2026-01-01T13:00:00Z");
  expect(kept("12:00")).toBe("12:00");
  expect(kept(null)).toBeNull();
});

test("P2: unless it is told otherwise, a run refuses what the credits do not cover, and stops instead of waiting", () => {
  expect(defaultRunOptions).toMatchObject({
    maxCredits: null,
    onInsufficient: "refuse",
    onDailyLimit: "stop",
    settle: "stop",
    errorIsFree: false,
    orphanCredits: 0,
    retries: 1,
  });
  expect(nothingToSubmit).toMatchObject({ maxCredits: 0, retries: 0, onInsufficient: "stop" });
});
