import type { AlarmClock } from "../../src/clock.js";

/**
 * Virtual time. It moves only when nothing can continue without it: one sleeper is woken, everything that follows from
 * it runs to its end, then the next is woken. So a run is a sequence of events, the same for the same seed, however the
 * machine's own threads happen to be scheduled.
 */
interface Sleeper {
  at: number;
  order: number;
  wake(): void;
}

export class Kernel {
  private sleepers: Sleeper[] = [];
  private order = 0;
  private failure: { error: unknown } | null = null;

  /** `isWorking`: real work is in progress that virtual time has to wait for, such as the decoding of a picture. */
  constructor(
    private time: number,
    private readonly isWorking: () => boolean,
  ) {}

  /** The one true time, which the service has (UTC ms). */
  now(): number {
    return this.time;
  }

  /** Ends the simulation with this error. */
  fail(error: unknown): void {
    this.failure ??= { error };
  }

  /** Calls `act` at `at`, or with the next event when that has passed. Returns what takes it back. */
  schedule(at: number, act: () => void): () => void {
    // A real clock has whole milliseconds.
    const sleeper: Sleeper = { at: Math.max(Math.ceil(at), this.time), order: this.order++, wake: act };
    // Few are asleep at a time, and most new ones wake last: searching from the end is quick.
    let index = this.sleepers.length;
    while (index > 0 && isLater(this.sleepers[index - 1] as Sleeper, sleeper)) index--;
    this.sleepers.splice(index, 0, sleeper);
    return () => {
      const place = this.sleepers.indexOf(sleeper);
      if (place >= 0) this.sleepers.splice(place, 1);
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.schedule(this.time + ms, resolve);
    });
  }

  /** Runs until `ended` says so, nobody is left to wake, or virtual time reaches `until`. */
  async run(ended: () => boolean, until: number): Promise<"ended" | "stuck" | "too long"> {
    for (;;) {
      await this.quiet();
      if (this.failure !== null) throw this.failure.error;
      if (ended()) return "ended";
      const next = this.sleepers.shift();
      if (next === undefined) return "stuck";
      if (next.at > until) return "too long";
      this.time = Math.max(this.time, next.at);
      next.wake();
    }
  }

  /**
   * Resolves when everything that can continue without the clock has done so. What follows from an event are promises,
   * and those are all settled by the end of a turn; only real work, such as the decoding of a picture, takes more
   * turns.
   */
  private async quiet(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve));
    while (this.failure === null && this.isWorking());
  }
}

function isLater(a: Sleeper, b: Sleeper): boolean {
  return a.at > b.at || (a.at === b.at && a.order > b.order);
}

/** When it is noticed at the latest that the clock was set (ms). */
const noticedMs = 30_000;

/** The clock of one process: its wall clock may be wrong and may jump; its sleepers die with it. */
export class ProcessClock implements AlarmClock {
  private readonly bornAt: number;
  private readonly alarms = new Set<() => void>();

  constructor(
    private readonly kernel: Kernel,
    private readonly wall: { offsetMs: number },
    private readonly isAlive: () => boolean,
  ) {
    this.bornAt = kernel.now();
  }

  now(): number {
    return this.kernel.now() + this.wall.offsetMs;
  }

  monotonic(): number {
    return this.kernel.now() - this.bornAt;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        takeBack();
        signal?.removeEventListener("abort", end);
        if (this.isAlive()) resolve();
      };
      const takeBack = this.kernel.schedule(this.kernel.now() + Math.max(0, ms), end);
      signal?.addEventListener("abort", end);
    });
  }

  alarm(at: number, ring: () => void): () => void {
    const end = () => {
      takeBack();
      if (this.isAlive()) ring();
    };
    const noSchedule = this.kernel.schedule(this.kernel.now() + Math.max(0, at - this.now()), end);
    const takeBack = () => {
      noSchedule();
      this.alarms.delete(end);
    };
    this.alarms.add(end);
    return takeBack;
  }

  /** Code that waits for a wall-clock time notices some time later that the clock was set. */
  wasSet(): void {
    const notice = (end: () => void) => () => this.alarms.has(end) && end();
    for (const end of this.alarms) this.kernel.schedule(this.kernel.now() + noticedMs, notice(end));
  }
}
