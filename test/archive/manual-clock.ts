import type { Clock } from "../../src/clock.js";

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  private time = 0;
  private readonly sleepers = new Set<{ due: number; wake: () => void }>();

  now(): number {
    return 1_790_000_000_000 + this.time;
  }

  monotonic(): number {
    return this.time;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const sleeper = { due: this.time + ms, wake };
      const { sleepers } = this;
      function wake() {
        sleepers.delete(sleeper);
        resolve();
      }
      sleepers.add(sleeper);
      if (signal?.aborted) wake();
      else signal?.addEventListener("abort", wake, { once: true });
    });
  }

  advance(ms: number): void {
    this.time += ms;
    for (const sleeper of [...this.sleepers]) if (sleeper.due <= this.time) sleeper.wake();
  }

  get sleeping(): number {
    return this.sleepers.size;
  }
}
