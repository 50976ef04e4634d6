import type { Endpoint } from "../../../src/api/endpoints.js";
import type { PlanLimits } from "../../../src/api/plans.js";
import { dayMs, freeSlots, minuteMs, type Quota } from "../../../src/core/quota/quota.js";

/** The requests of one account, as a run needs it. */
export interface BenchLedger {
  quota(): Promise<Quota>;
  /** A place for a request that will be answered then; null where there is none. */
  reserve(endpoint: Endpoint, answeredAt: number): Promise<Place | null>;
}

export interface Place {
  /** The answer came; a refusal with the milliseconds that it asks for. */
  answered(refusedMs: number | null): void;
}

/**
 * The windows of the request ledger, in memory: a request counts from its sending until the window's length after its
 * answer. The ledger of the product is in SQLite and is tested there; in a bench of hundreds of thousands of requests
 * it would be most of the time. Where the service's limiter is part of what is measured, it is used.
 */
export class MemoryLedger implements BenchLedger {
  private readonly ends: number[] = [];
  private minuteFrom = 0;
  private dayFrom = 0;

  constructor(
    private readonly limits: PlanLimits,
    private readonly clock: () => number,
  ) {}

  async reserve(_endpoint: Endpoint, answeredAt: number): Promise<Place | null> {
    if (freeSlots(this.now(), this.clock()) < 1) return null;
    // Answers overtake one another by less than a second: the order is kept.
    let index = this.ends.length;
    while (index > this.dayFrom && (this.ends[index - 1] as number) > answeredAt) index--;
    this.ends.splice(index, 0, answeredAt);
    return { answered: () => {} };
  }

  async quota(): Promise<Quota> {
    return this.now();
  }

  private now(): Quota {
    const now = this.clock();
    while (this.minuteFrom < this.ends.length && (this.ends[this.minuteFrom] as number) + minuteMs <= now)
      this.minuteFrom++;
    while (this.dayFrom < this.ends.length && (this.ends[this.dayFrom] as number) + dayMs <= now)
      this.dayFrom++;
    const { perMinute, perDay } = this.limits;
    return {
      minute: this.window(perMinute, this.minuteFrom, minuteMs, now),
      day: this.window(perDay, this.dayFrom, dayMs, now),
      releases: perMinute === null ? [] : this.ends.slice(this.minuteFrom).map((at) => at + minuteMs),
      pacing: { spacingMs: 0, nextAt: 0 },
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
