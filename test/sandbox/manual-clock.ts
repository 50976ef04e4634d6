import type { Clock, Random } from "../../src/clock.js";

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  constructor(private ms = Date.UTC(2026, 10, 20, 12)) {}

  now(): number {
    return this.ms;
  }

  monotonic(): number {
    return this.ms;
  }

  sleep(ms: number): Promise<void> {
    this.ms += ms;
    return Promise.resolve();
  }

  advance(ms: number): void {
    this.ms += ms;
  }
}

/** The same numbers and ids in each run; `next` gives the middle of every range. */
export class CountingRandom implements Random {
  private count = 0;

  next(): number {
    return 0.5;
  }

  uuid(): string {
    this.count += 1;
    return `00000000-0000-4000-8000-${String(this.count).padStart(12, "0")}`;
  }
}
