import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "../src/system.js";

describe("an alarm", () => {
  let rung: number[];
  const ring = () => rung.push(Date.now());
  const start = Date.UTC(2026, 0, 1);
  const minute = 60_000;

  beforeEach(() => {
    rung = [];
    vi.useFakeTimers({ now: start, toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("rings once, at its time", () => {
    systemClock.alarm(start + 10 * minute, ring);
    vi.advanceTimersByTime(10 * minute - 1);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(20 * minute);
    expect(rung).toEqual([start + 10 * minute]);
  });

  test("rings with the next turn when its time has passed", () => {
    systemClock.alarm(start - minute, ring);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(0);
    expect(rung).toEqual([start]);
  });

  test("waits for its time where the timer was early", () => {
    systemClock.alarm(start + 100, ring);
    vi.setSystemTime(start - 1);
    vi.advanceTimersByTime(100);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(rung).toEqual([start + 100]);
  });

  test.each([
    ["forwards, as after a sleep of the machine", 60 * minute],
    ["back", -60 * minute],
  ])("rings within half a minute when the clock was set %s", (_, byMs) => {
    systemClock.alarm(start + 5 * 60 * minute, ring);
    vi.advanceTimersByTime(minute);
    vi.setSystemTime(Date.now() + byMs);
    vi.advanceTimersByTime(30_000);
    expect(rung).toEqual([start + minute + byMs + 30_000]);
    vi.advanceTimersByTime(10 * 60 * minute);
    expect(rung).toHaveLength(1);
  });

  test("does not ring when it was taken back", () => {
    const takeBack = systemClock.alarm(start + 10 * minute, ring);
    vi.advanceTimersByTime(minute);
    takeBack();
    vi.advanceTimersByTime(60 * minute);
    expect(rung).toEqual([]);
  });
});
