import type { AlarmClock, Clock } from "../clock.js";
import { backoffMs } from "../core/quota/backoff.js";

/**
 * A while that only this process knows of. It is over when either clock says so: the wall clock goes on while the
 * machine sleeps, and the other one does though somebody puts the wall clock back by ten years.
 */
export class Wait {
  private readonly endsAt: number;
  private readonly ends: number;

  constructor(
    private readonly clock: Clock,
    ms: number,
  ) {
    this.endsAt = clock.now() + ms;
    this.ends = clock.monotonic() + ms;
  }

  get isOver(): boolean {
    return this.until <= this.clock.now();
  }

  /** When it is over (UTC ms), as the wall clock stands now. */
  get until(): number {
    const { clock } = this;
    return Math.min(this.endsAt, Math.ceil(clock.now() + this.ends - clock.monotonic()));
  }
}

/** Whether overdue tasks, and nothing else, keep a run open for a while. */
export class OverdueWait {
  private since: number | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly forMs: number,
  ) {}

  /** `overdue` tasks; `hasOthers` whether anything else that may go on keeps the run open. */
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

/** Whether the service can be reached: silence after each failure, longer each time, and how long it has lasted. */
export class Reachability {
  private silence: Wait | null = null;
  private failures = 0;
  private since: number | null = null;

  constructor(private readonly clock: Clock) {}

  /** No request before then (UTC ms). */
  get silentUntil(): number {
    return this.silence?.until ?? 0;
  }

  /** The service answered something. */
  reached(): void {
    this.failures = 0;
    this.since = null;
    this.silence = null;
  }

  /** A request found no service, or no answer. Returns for how long this has lasted, in ms. */
  missed(): number {
    const now = this.clock.monotonic();
    this.since ??= now;
    this.failures++;
    this.silence = new Wait(this.clock, backoffMs(this.failures));
    return now - this.since;
  }
}

/** What a loop sleeps by: until a time, or until somebody rings. */
export class WakeSignal {
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
