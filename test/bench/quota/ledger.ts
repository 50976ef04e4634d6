import type { PlanLimits } from "../../../src/api/plans.js";
import { dayMs, minuteMs, type Quota } from "../../../src/core/quota.js";

/**
 * The windows of the request ledger, in memory and for one sender: a request counts from its sending until the
 * window's length after its answer. The ledger of the product is in SQLite and is tested there; in a bench of
 * hundreds of thousands of requests it would be most of the time.
 */
export class BenchLedger {
  private readonly ends: number[] = [];
  private minuteFrom = 0;
  private dayFrom = 0;

  constructor(private readonly limits: PlanLimits) {}

  /** A request leaves and is answered at `answeredAt`: virtual time knows. */
  send(answeredAt: number): void {
    // Answers overtake one another by less than a second: the order is kept.
    let index = this.ends.length;
    while (index > this.dayFrom && (this.ends[index - 1] as number) > answeredAt) index--;
    this.ends.splice(index, 0, answeredAt);
  }

  quota(now: number): Quota {
    while (this.minuteFrom < this.ends.length && (this.ends[this.minuteFrom] as number) + minuteMs <= now)
      this.minuteFrom++;
    while (this.dayFrom < this.ends.length && (this.ends[this.dayFrom] as number) + dayMs <= now)
      this.dayFrom++;
    const { perMinute, perDay } = this.limits;
    return {
      minute: this.window(perMinute, this.minuteFrom, minuteMs, now),
      day: this.window(perDay, this.dayFrom, dayMs, now),
      releases: perMinute === null ? [] : this.ends.slice(this.minuteFrom).map((at) => at + minuteMs),
      gait: { spacingMs: 0, nextAt: 0 },
      owedElsewhere: 0,
      blockedUntil: null,
    };
  }

  private window(limit: number | null, from: number, lengthMs: number, now: number): Quota["minute"] {
    const used = this.ends.length - from;
    const leaves = (index: number) => (this.ends[from + index] ?? now) + lengthMs;
    const full = limit !== null && used >= limit;
    return {
      limit,
      used,
      nextFreeAt: full ? leaves(used - limit) : now,
      nextReleaseAt: used === 0 ? null : leaves(0),
    };
  }
}
