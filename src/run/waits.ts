import type { AlarmClock, Clock } from "../clock.js";

/** Whether overdue tasks, and nothing else, keep a run open for a while. */
export class OverdueWait {
  private since: number | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly forMs: number,
  ) {}

  /** `overdue` tasks are open; `hasOthers`: something else that may go on keeps the run open. */
  keepsOpen(overdue: number, hasOthers: boolean): boolean {
    if (overdue === 0 || hasOthers) this.since = null;
    else this.since ??= this.clock.monotonic();
    if (this.since === null) return overdue > 0 && this.forMs > 0;
    return this.clock.monotonic() - this.since < this.forMs;
  }

  /** When that while is over (UTC ms); null while it has not begun. */
  get until(): number | null {
    return this.since === null ? null : this.clock.now() + this.since + this.forMs - this.clock.monotonic();
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
