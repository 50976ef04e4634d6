import type { Clock } from "../clock.js";

/**
 * A while that only this process knows of. It is over when either clock says so: the wall clock goes on while the
 * machine sleeps, and the other one does though somebody puts the wall clock back by ten years.
 */
export class Wait {
  private readonly endsAt: number;
  private readonly ends: number;

  constructor(
    private readonly clock: Clock,
    ms: number,
  ) {
    this.endsAt = clock.now() + ms;
    this.ends = clock.monotonic() + ms;
  }

  get isOver(): boolean {
    return this.until <= this.clock.now();
  }

  /** When it is over (UTC ms), as the wall clock stands now. */
  get until(): number {
    const { clock } = this;
    return Math.min(this.endsAt, Math.ceil(clock.now() + this.ends - clock.monotonic()));
  }
}
