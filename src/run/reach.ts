import type { Clock } from "../clock.js";
import { backoffMs } from "../core/quota/backoff.js";
import { Wait } from "./wait.js";

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

  /** A request found no service, or no answer. Returns for how long this has lasted, in ms. */
  missed(): number {
    const now = this.clock.monotonic();
    this.since ??= now;
    this.failures++;
    this.silence = new Wait(this.clock, backoffMs(this.failures));
    return now - this.since;
  }
}
