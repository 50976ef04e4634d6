import type { AlarmClock } from "../src/clock.js";

interface Sleeper {
  /** By the clock that nobody sets. */
  at: number;
  /** Whether it waits for a time of the wall clock. */
  isAlarm: boolean;
  wake(): void;
}

/** A clock that stands still until a test moves it. Sleepers wake in the order of their times. */
export class ManualClock implements AlarmClock {
  /** How much too early sleepers wake (ms), as those of a real clock may. */
  earlyMs = 0;
  private sleepers: Sleeper[] = [];
  /** By how much the wall clock was set. */
  private offset = 0;

  constructor(private time = Date.UTC(2026, 0, 1)) {}

  now(): number {
    return this.time + this.offset;
  }

  monotonic(): number {
    return this.time;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        takeBack();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const takeBack = this.wakeIn(ms, false, end);
      signal?.addEventListener("abort", end, { once: true });
    });
  }

  alarm(at: number, ring: () => void): () => void {
    return this.wakeIn(at - this.now(), true, ring);
  }

  private wakeIn(ms: number, isAlarm: boolean, wake: () => void): () => void {
    const sleeper = { at: this.time + Math.max(Math.min(1, ms), ms - this.earlyMs), isAlarm, wake };
    this.sleepers.push(sleeper);
    return () => {
      this.sleepers = this.sleepers.filter((other) => other !== sleeper);
    };
  }

  /** Moves the time and wakes every sleeper that is due by then. */
  advance(ms: number): void {
    this.time += ms;
    const due = this.sleepers.filter((sleeper) => sleeper.at <= this.time).sort((a, b) => a.at - b.at);
    this.sleepers = this.sleepers.filter((sleeper) => sleeper.at > this.time);
    for (const sleeper of due) sleeper.wake();
  }

  /** Sets the wall clock. Code that waits for a wall-clock time notices within half a minute. */
  set(byMs: number): void {
    this.offset += byMs;
    const noticedAt = this.time + 30_000;
    for (const sleeper of this.sleepers) if (sleeper.isAlarm) sleeper.at = Math.min(sleeper.at, noticedAt);
  }

  /** How many are asleep. */
  get asleep(): number {
    return this.sleepers.length;
  }

  /** Moves to the earliest sleeper's time. Returns false when nobody sleeps. */
  advanceToNext(): boolean {
    const [first] = this.sleepers.toSorted((a, b) => a.at - b.at);
    if (!first) return false;
    this.advance(Math.max(0, first.at - this.time));
    return true;
  }
}
