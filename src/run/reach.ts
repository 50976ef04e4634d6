import type { Clock } from "../clock.js";
import { backoffMs } from "../core/retry.js";

/** Whether the service can be reached: silence after each failure, longer each time, and how long it has lasted. */
export class Reach {
  /** No request before then (UTC ms). */
  silentUntil = 0;
  private failures = 0;
  private since: number | null = null;

  constructor(private readonly clock: Clock) {}

  /** The service answered something. */
  reached(): void {
    this.failures = 0;
    this.since = null;
    this.silentUntil = 0;
  }

  /** A request found no service, or no answer. Returns for how long this has lasted, in ms. */
  missed(): number {
    const now = this.clock.monotonic();
    this.since ??= now;
    this.failures++;
    this.silentUntil = this.clock.now() + backoffMs(this.failures);
    return now - this.since;
  }
}
