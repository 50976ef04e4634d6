import type { AlarmClock } from "../clock.js";

/** What a loop sleeps by: until a time, or until somebody rings. */
export class Doorbell {
  private hasRung = false;
  private wake: () => void = () => {};

  ring(): void {
    this.hasRung = true;
    this.wake();
  }

  /** From here on it counts: whoever rang before is seen to now. */
  listen(): void {
    this.hasRung = false;
  }

  /** Sleeps until the clock shows `at` (UTC ms) or was set, or until it rings; not at all when it has rung since `listen`. */
  async until(clock: AlarmClock, at: number): Promise<void> {
    if (this.hasRung) return;
    await new Promise<void>((resolve) => {
      const takeBack = clock.alarm(at, resolve);
      this.wake = () => {
        takeBack();
        resolve();
      };
    });
    this.wake = () => {};
  }
}
