import type { ServiceClock, Wait } from "../../client/service-clock.js";
import { backoffMs } from "../../core/quota/backoff.js";

/** Whether the service can be reached: silence after each failure, longer each time, and how long it has lasted. */
export class Reachability {
  private silence: Wait | null = null;
  private failures = 0;
  private lasts: (() => number) | null = null;

  constructor(private readonly time: ServiceClock) {}

  /** No request before then (UTC ms). */
  get silentUntil(): number {
    return this.silence?.until ?? 0;
  }

  /** The service answered something. */
  reached(): void {
    this.failures = 0;
    this.lasts = null;
    this.silence = null;
  }

  /** A request found no service, or got no answer. Returns for how long this has lasted, in ms. */
  missed(): number {
    this.lasts ??= this.time.stopwatch();
    this.failures++;
    this.silence = this.time.wait(backoffMs(this.failures));
    return this.lasts();
  }
}
