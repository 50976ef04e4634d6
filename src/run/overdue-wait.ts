import type { Clock } from "../clock.js";
import type { ItemState } from "../core/item.js";

/** Whether overdue tasks, and nothing else, keep a run open for a while. */
export class OverdueWait {
  private since: number | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly forMs: number,
  ) {}

  keepsOpen(counts: Readonly<Record<ItemState, number>>): boolean {
    const open = counts.planned + counts.submitting + counts.processing + counts.ready;
    if (counts.overdue === 0 || open > 0) this.since = null;
    else this.since ??= this.clock.monotonic();
    if (this.since === null) return counts.overdue > 0 && this.forMs > 0;
    return this.clock.monotonic() - this.since < this.forMs;
  }

  /** When that while is over (UTC ms); null while it has not begun. */
  get until(): number | null {
    return this.since === null ? null : this.clock.now() + this.since + this.forMs - this.clock.monotonic();
  }
}
