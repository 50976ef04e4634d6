import type { ServerResponse } from "node:http";
import type { AlarmClock } from "../../src/clock.js";
import { systemClock } from "../../src/system.js";
import { isIdle } from "./idle.js";

interface Sleeper {
  /** By the monotonic clock. */
  at: number;
  wake(): void;
  /** Ends the wait by real time. */
  real: AbortController;
}

/** So much may be skipped while a request is held (ms): less than any limit on its duration. */
const heldMsMax = 9_000;
/** For so many turns of the event loop nothing may be in progress before time is skipped. */
const quietTurns = 20;

/**
 * Real time, of which the waits are left out: while a command runs in this process and everything in the process
 * only sleeps, the clock is moved to the earliest end of a sleep. All commands and services of a test share it.
 */
class SkippingClock implements AlarmClock {
  private readonly sleepers = new Set<Sleeper>();
  private skippedMs = 0;
  /** What had been skipped when each request that is held began to be. */
  private readonly held = new Set<{ from: number }>();
  private commands = 0;
  private isTicking = false;

  now(): number {
    return systemClock.now() + this.skippedMs;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.skippedMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        takeBack();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const takeBack = this.wakeIn(ms, end);
      signal?.addEventListener("abort", end, { once: true });
    });
  }

  alarm(at: number, ring: () => void): () => void {
    return this.wakeIn(at - this.now(), ring);
  }

  /** Waits are skipped until this command has ended. */
  async during<Result>(command: Promise<Result>): Promise<Result> {
    this.commands++;
    if (!this.isTicking) void this.tick();
    try {
      return await command;
    } finally {
      this.commands--;
    }
  }

  /**
   * A request is held until the test has this answer to it, or whoever asked has gone. Others wait for the test meanwhile,
   * so some time is skipped.
   */
  async holding<Answer>(answer: Answer | Promise<Answer>, reply: ServerResponse): Promise<Answer> {
    const hold = { from: this.skippedMs };
    this.held.add(hold);
    reply.once("close", () => this.held.delete(hold));
    try {
      return await answer;
    } finally {
      this.held.delete(hold);
    }
  }

  /** So much time passes (ms), in which nothing runs. Services see it pass too. */
  pass(ms: number): void {
    this.moveBy(ms);
  }

  /** Back to real time: commands that run as processes know no other. */
  reset(): void {
    this.skippedMs = 0;
    this.held.clear();
  }

  private wakeIn(ms: number, wake: () => void): () => void {
    const sleeper: Sleeper = { at: this.monotonic() + Math.max(0, ms), wake, real: new AbortController() };
    this.sleepers.add(sleeper);
    void systemClock.sleep(ms, sleeper.real.signal).then(() => {
      if (!sleeper.real.signal.aborted) this.end(sleeper);
    });
    return () => {
      this.sleepers.delete(sleeper);
      sleeper.real.abort();
    };
  }

  private end(sleeper: Sleeper): void {
    if (!this.sleepers.delete(sleeper)) return;
    sleeper.real.abort();
    sleeper.wake();
  }

  private async tick(): Promise<void> {
    this.isTicking = true;
    let quiet = 0;
    while (this.commands > 0) {
      const mayMove = this.sleepers.size > 0 && isIdle(this.held.size) && this.maySkip();
      quiet = mayMove ? quiet + 1 : 0;
      if (quiet > quietTurns) {
        quiet = 0;
        this.skip();
      }
      await new Promise((resolve) => (mayMove ? setImmediate(resolve) : setTimeout(resolve, 2)));
    }
    this.isTicking = false;
  }

  private maySkip(): boolean {
    const end = Math.min(...[...this.held].map(({ from }) => from + heldMsMax));
    return this.skippedMs + this.untilNext() <= end;
  }

  private untilNext(): number {
    const next = Math.min(...[...this.sleepers].map(({ at }) => at));
    // The wall clock shows whole milliseconds.
    return Math.max(0, Math.ceil(next - this.monotonic()));
  }

  /** Moves to the earliest end of a sleep, and wakes all that sleep until then, in the order of their times. */
  private skip(): void {
    this.moveBy(this.untilNext());
  }

  private moveBy(ms: number): void {
    const inOrder = [...this.sleepers].toSorted((a, b) => a.at - b.at);
    this.skippedMs += ms;
    const now = this.monotonic();
    for (const sleeper of inOrder) if (sleeper.at <= now) this.end(sleeper);
  }
}

export const skippingClock = new SkippingClock();
