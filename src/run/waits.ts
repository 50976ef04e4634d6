import type { ServiceClock } from "../client/service-clock.js";
import type { AlarmClock } from "../clock.js";

/** Whether overdue tasks, and nothing else, keep a run open for a while. */
export class OverdueWait {
  /** Milliseconds for which they alone have kept it open; null while they do not. */
  private lasts: (() => number) | null = null;

  constructor(
    private readonly time: ServiceClock,
    private readonly forMs: number,
  ) {}

  /** `overdue` tasks are open; `hasOthers`: something else that may continue keeps the run open. */
  keepsOpen(overdue: number, hasOthers: boolean): boolean {
    if (overdue === 0 || hasOthers) this.lasts = null;
    else this.lasts ??= this.time.stopwatch();
    return this.lasts === null ? overdue > 0 && this.forMs > 0 : this.lasts() < this.forMs;
  }

  /** Milliseconds until that time is over; null before it has started. */
  get leftMs(): number | null {
    return this.lasts === null ? null : this.forMs - this.lasts();
  }
}

/** What a loop sleeps by: until a time, or until the bell rings. */
export class WakeSignal {
  private hasRung = false;
  private wake: () => void = () => {};

  ring(): void {
    this.hasRung = true;
    this.wake();
  }

  /** From here on a ring counts: earlier ones are dealt with by the turn that begins now. */
  listen(): void {
    this.hasRung = false;
  }

  /**
   * Sleeps until the clock shows `at` (UTC ms) or was set, or until it rings; not at all when it has rung since
   * `listen`.
   */
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
