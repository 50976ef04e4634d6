import { describe, expect, test } from "vitest";
import { WakeSignal } from "../../src/clock.js";
import { ManualClock } from "../manual-clock.js";

describe("a loop that sleeps", () => {
  const setUp = () => {
    const clock = new ManualClock();
    const bell = new WakeSignal();
    let woken = false;
    const sleep = (ms: number) => {
      woken = false;
      const slept = bell.until(clock, clock.now() + ms).then(() => {
        woken = true;
      });
      return { slept, isWoken: () => Promise.resolve().then(() => woken) };
    };
    return { clock, bell, sleep };
  };

  test("wakes when its time has come, and not before", async () => {
    const { clock, sleep } = setUp();
    const { slept, isWoken } = sleep(1_000);
    clock.advance(999);
    expect(await isWoken()).toBe(false);
    clock.advance(1);
    await slept;
  });

  test("wakes when it rings, and leaves no alarm behind", async () => {
    const { clock, bell, sleep } = setUp();
    const { slept } = sleep(1_000);
    bell.ring();
    await slept;
    expect(clock.asleep).toBe(0);
  });

  test("does not fall asleep when it has rung since it listened", async () => {
    const { clock, bell, sleep } = setUp();
    bell.ring();
    await sleep(1_000).slept;
    expect(clock.asleep).toBe(0);
    bell.listen();
    const { isWoken } = sleep(1_000);
    expect(await isWoken()).toBe(false);
    expect(clock.asleep).toBe(1);
  });
});
