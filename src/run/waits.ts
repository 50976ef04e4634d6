import type { ServiceClock } from "../client/service-clock.js";
import type { AlarmClock } from "../clock.js";
import { afterAnswer, fullLanes, type LaneAnswer, type LaneLimit } from "../core/pace/lanes.js";

/** Whether overdue tasks, and nothing else, keep a run open for a while. */
export class OverdueWait {
  /** Milliseconds for which they alone have kept it open; null while they do not. */
  private lasts: (() => number) | null = null;

  constructor(
    private readonly time: ServiceClock,
    private readonly forMs: number,
  ) {}

  /** `overdue` tasks are open; `hasOthers`: something else that may continue keeps the run open. */
  keepsOpen(overdue: number, hasOthers: boolean): boolean {
    if (overdue === 0 || hasOthers) this.lasts = null;
    else this.lasts ??= this.time.stopwatch();
    return this.lasts === null ? overdue > 0 && this.forMs > 0 : this.lasts() < this.forMs;
  }

  /** Milliseconds until that time is over; null before it has started. */
  get leftMs(): number | null {
    return this.lasts === null ? null : this.forMs - this.lasts();
  }
}

/** What a loop sleeps by: until a time, or until the bell rings. */
export class WakeSignal {
  private hasRung = false;
  private wake: () => void = () => {};

  ring(): void {
    this.hasRung = true;
    this.wake();
  }

  /** From here on a ring counts: earlier ones are dealt with by the turn that begins now. */
  listen(): void {
    this.hasRung = false;
  }

  /**
   * Sleeps until the clock shows `at` (UTC ms) or was set, or until it rings; not at all when it has rung since
   * `listen`.
   */
  async until(clock: AlarmClock, at: number): Promise<void> {
    if (this.hasRung) return;
    await new Promise<void>((resolve) => {
      const takeBack = clock.alarm(at, resolve);
      this.wake = () => {
        takeBack();
        resolve();
      };
    });
    this.wake = () => {};
  }
}

/** Everything planned is to be submitted within this time (ms), if the lanes suffice. */
const submitWithinMs = 5_000;

/**
 * How many lanes to use: as many as keep the pipeline busy, and no more than the service bears. Each request in flight is
 * in doubt if the process dies, so a run begins with one lane and takes more only as the time of the answers shows that
 * everything planned would otherwise take too long. A user who asks for lanes gets them from the start.
 */
export class LanesInUse {
  private needed: number;
  private limit: LaneLimit;

  /** `lanes` is the most to use; `saves`: no more than are needed. */
  constructor(
    private readonly lanes: number,
    saves: boolean,
  ) {
    this.needed = saves ? 1 : lanes;
    this.limit = fullLanes(lanes);
  }

  answered(answer: LaneAnswer): void {
    this.limit = afterAnswer(this.limit, answer);
  }

  /** So many items are planned. Never fewer lanes are needed than before, so that the last items are submitted as fast as the first. */
  see(planned: number): void {
    const wanted = Math.ceil((planned * (this.limit.usualMs ?? 0)) / submitWithinMs);
    this.needed = Math.max(this.needed, Math.min(wanted, this.lanes));
  }

  get count(): number {
    return Math.min(this.needed, Math.floor(this.limit.lanes));
  }
}
