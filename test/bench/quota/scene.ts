import { type PlanName, planLimits } from "../../../src/api/plans.js";
import { lanesOf } from "../../../src/core/quota/quota.js";
import { Agenda } from "./agenda.js";
import { type BenchLedger, MemoryLedger } from "./ledger.js";
import type { Door } from "./limiter.js";
import type { TimedService } from "./service.js";

export const start = Date.UTC(2026, 0, 1);

/** What the runs of one account share: the time, the service with its limiter, the request ledger and the lanes. */
export class Scene {
  now = start;
  readonly ledger: BenchLedger;
  private readonly agenda = new Agenda();
  private lanesTaken = 0;
  private readonly lanes: number;

  constructor(
    readonly service: TimedService,
    readonly plan: PlanName,
    readonly door: Door | null = null,
    ledger?: (clock: () => number) => BenchLedger,
    lanes?: number,
  ) {
    const clock = () => this.now;
    this.ledger = ledger?.(clock) ?? new MemoryLedger(planLimits[plan], clock);
    this.lanes = lanes ?? lanesOf(plan);
  }

  /** The lanes that a run counts on: more than are free where another run has them. */
  get lanesMost(): number {
    return this.lanes;
  }

  takeLane(): boolean {
    if (this.lanesTaken >= this.lanes) return false;
    this.lanesTaken++;
    return true;
  }

  releaseLane(): void {
    this.lanesTaken--;
  }

  at(at: number, act: () => void): void {
    this.agenda.at(at, act);
  }

  /** Lets the runs have their turns until all are done or the end is reached. */
  async play(runs: readonly Run[], untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    for (;;) {
      for (const run of runs) if (run.wakeAt !== null && run.wakeAt <= this.now) await run.turn();
      const wakes = runs.flatMap(({ wakeAt }) => (wakeAt === null ? [] : [Math.max(wakeAt, this.now + 1)]));
      const at = this.agenda.next(wakes.length === 0 ? null : Math.min(...wakes));
      if (at === null || at > start + untilMs) return;
      this.now = Math.max(this.now, at);
      this.agenda.run(this.now);
    }
  }
}

export interface Run {
  /** When the run asks what to do next; null while only the end of a step can change anything. */
  readonly wakeAt: number | null;
  turn(): Promise<void>;
}
