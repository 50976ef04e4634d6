import PQueue from "p-queue";
import type { Clock } from "../../clock.js";

/** How many polls a second a provider is sent at most, unless its requests are limited further. */
const pollsASecond = 5;

/** The jobs of one provider: those that wait, and as many at once as it takes. */
export class ProviderLine {
  /** Tasks that have not begun, in their order. */
  readonly waiting = new Set<string>();
  /** Nothing is sent before this instant (UTC ms): the provider asked for a pause. */
  pausedUntil = 0;
  private readonly queue: PQueue;
  private nextRequest = 0;
  private nextPoll = 0;
  /** The last times that jobs took (ms). */
  private readonly took: number[] = [];

  constructor(
    concurrency: number,
    private readonly perMinute: number | null,
    private readonly clock: Clock,
    private readonly closing: AbortSignal,
  ) {
    this.queue = new PQueue({ concurrency });
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

  ended(ms: number): void {
    this.took.push(ms);
    if (this.took.length > 20) this.took.shift();
  }

  /** How long a job usually takes (ms); null before the first has ended. */
  usualMs(): number | null {
    if (this.took.length === 0) return null;
    return this.took.reduce((sum, ms) => sum + ms, 0) / this.took.length;
  }

  /** How many are before a task, and how long they will take; null once it has begun. */
  place(taskId: string): { position: number; aheadMs: number | null } | null {
    let position = 0;
    for (const waiting of this.waiting) {
      if (waiting === taskId) {
        const usual = this.usualMs();
        const rounds = Math.floor(position / this.concurrency) + 1;
        return { position, aheadMs: usual === null ? null : Math.round(rounds * usual) };
      }
      position++;
    }
    return null;
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
    if (ms > 0) await this.clock.sleep(ms, this.closing);
  }
}
