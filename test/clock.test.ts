import { describe, expect, test } from "vitest";
import { followingClock } from "../src/clock.js";
import { ManualClock } from "./manual-clock.js";

/** A machine's clock, and one that follows a shared clock. */
function machine() {
  const own = new ManualClock();
  return { own, clock: followingClock(own) };
}

describe("a clock that follows a shared one", () => {
  const minute = 60_000;
  const shared = Date.UTC(2026, 5, 1);

  test("is the machine's own until it is told of the shared one", () => {
    const { own, clock } = machine();
    own.set(5 * minute);
    expect(clock.now()).toBe(own.now());
  });

  test("goes by the shared one from then on, also where the machine's own is set", () => {
    const { own, clock } = machine();
    clock.follow?.(shared, 20);
    own.set(5 * minute);
    own.advance(1_000);
    expect(clock.now()).toBe(shared + 1_000);
  });

  test("is corrected by what it is told, and only as far as that is certain", () => {
    const { own, clock } = machine();
    clock.follow?.(shared, 0);
    own.advance(1_000);
    // The answer took 300 ms: the shared clock shows 900 to 1,200 now, so 1,000 may be right.
    clock.follow?.(shared + 900, 300);
    expect(clock.now()).toBe(shared + 1_000);
    clock.follow?.(shared + 1_500, 300);
    expect(clock.now()).toBe(shared + 1_500);
    clock.follow?.(shared + 1_000, 300);
    expect(clock.now()).toBe(shared + 1_300);
  });

  test("rings an alarm at the shared time, whatever the machine's own shows", () => {
    const { own, clock } = machine();
    own.set(-5 * minute);
    clock.follow?.(shared, 0);
    const rung: number[] = [];
    clock.alarm(shared + minute, () => rung.push(clock.now()));
    own.advance(minute - 1);
    expect(rung).toEqual([]);
    own.advance(1);
    expect(rung).toEqual([shared + minute]);
  });
});
