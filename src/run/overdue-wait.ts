import type { Clock } from "../clock.js";

/** Whether overdue tasks, and nothing else, keep a run open for a while. */
export class OverdueWait {
  private since: number | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly forMs: number,
  ) {}

  /** `overdue` tasks; `hasOthers` whether anything else that may go on keeps the run open. */
  keepsOpen(overdue: number, hasOthers: boolean): boolean {
    if (overdue === 0 || hasOthers) this.since = null;
    else this.since ??= this.clock.monotonic();
    if (this.since === null) return overdue > 0 && this.forMs > 0;
    return this.clock.monotonic() - this.since < this.forMs;
  }

  /** When that while is over (UTC ms); null while it has not begun. */
  get until(): number | null {
    return this.since === null ? null : this.clock.now() + this.since + this.forMs - this.clock.monotonic();
  }
}
