import type { Clock } from "../../clock.js";
import { backoffMs } from "../../core/quota/backoff.js";

/**
 * A while that only this process knows of. It is over when either clock says so: the wall clock goes on while the
 * machine sleeps, and the monotonic clock goes on when somebody sets the wall clock back by ten years.
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

/** Whether the service can be reached: silence after each failure, longer each time, and how long it has lasted. */
export class Reach {
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

  /** A request found no service, or got no answer. Returns for how long this has lasted, in ms. */
  missed(): number {
    const now = this.clock.monotonic();
    this.since ??= now;
    this.failures++;
    this.silence = new Wait(this.clock, backoffMs(this.failures));
    return now - this.since;
  }
}
