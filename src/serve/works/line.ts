import PQueue from "p-queue";
import type { Clock } from "../../clock.js";

/** How many polls a second a provider is sent at most, unless its requests are limited further. */
const pollsASecond = 5;

/** The jobs of one provider: those that wait, and as many at once as it takes. */
export class ProviderLine {
  /** Tasks that have not begun, in their order, each with its model. */
  readonly waiting = new Map<string, string>();
  /** Those that the provider has, or is about to get. */
  readonly begun = new Map<string, string>();
  /** Nothing is sent before this instant (UTC ms): the provider asked for a pause. */
  pausedUntil = 0;
  private readonly queue: PQueue;
  /** What ends the sleep of each job. A signal with a listener of each would walk through all of them at every poll. */
  private readonly sleeping = new Set<AbortController>();
  private nextRequest = 0;
  private nextPoll = 0;

  constructor(
    concurrency: number,
    private readonly perMinute: number | null,
    private readonly clock: Clock,
    private readonly closing: AbortSignal,
  ) {
    this.queue = new PQueue({ concurrency });
    closing.addEventListener("abort", () => {
      for (const sleep of this.sleeping) sleep.abort();
    });
  }

  set concurrency(value: number) {
    this.queue.concurrency = value;
  }

  get concurrency(): number {
    return this.queue.concurrency;
  }

  /** Runs `work` when the provider has room; `first` before those that wait already. */
  add(work: () => Promise<void>, first: boolean): void {
    void this.queue.add(work, { priority: first ? 1 : 0 });
  }

  /** Resolves when a submit may be sent. */
  async turn(): Promise<void> {
    if (this.perMinute !== null) {
      const at = Math.max(this.clock.now(), this.nextRequest);
      this.nextRequest = at + 60_000 / this.perMinute;
      await this.until(at);
    }
    while (this.pausedUntil > this.clock.now() && !this.closing.aborted) await this.until(this.pausedUntil);
  }

  /** Resolves after `ms`, or later if the provider is asked too often already. */
  async pollTurn(ms: number): Promise<void> {
    const gap = this.perMinute === null ? 1_000 / pollsASecond : 60_000 / this.perMinute;
    const at = Math.max(this.clock.now() + ms, this.nextPoll);
    this.nextPoll = Math.max(this.nextPoll, this.clock.now()) + gap;
    await this.until(at);
  }

  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.clock.now() + ms);
  }

  /** How many are before a task; null once it has begun. */
  position(taskId: string): number | null {
    if (!this.waiting.has(taskId)) return null;
    let position = 0;
    for (const waiting of this.waiting.keys()) {
      if (waiting === taskId) break;
      position++;
    }
    return position;
  }

  /** About how long it takes until a place is free behind the first so many that wait (ms); null if nobody knows. */
  aheadMs(waiting: number, usualMs: (model: string) => number | null): number | null {
    const before = [...this.begun.values(), ...[...this.waiting.values()].slice(0, waiting)];
    if (before.length < this.concurrency) return 0;
    const known = before.map(usualMs).filter((ms) => ms !== null);
    if (known.length === 0) return null;
    const mean = known.reduce((sum, ms) => sum + ms, 0) / known.length;
    return Math.round((mean * before.length) / this.concurrency);
  }

  clear(): void {
    this.queue.clear();
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    return this.queue.onIdle();
  }

  private async until(at: number): Promise<void> {
    const ms = at - this.clock.now();
    if (ms <= 0 || this.closing.aborted) return;
    const sleep = new AbortController();
    this.sleeping.add(sleep);
    await this.clock.sleep(ms, sleep.signal);
    this.sleeping.delete(sleep);
  }
}
