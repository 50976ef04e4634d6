import type { Clock } from "../../src/clock.js";
import { applyRunOrder } from "../../src/job/orders/apply.js";
import { type OrderPolling, pollOrders } from "../../src/job/orders/attend.js";
import type { Session } from "../../src/run/ports.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import type { Chance } from "./chance.js";
import type { Process } from "./machine.js";
import type { PlannedFault, Scenario } from "./scenario.js";
import { isCancelled, type Job } from "./workspace.js";

/** Somebody cancels the run of a workspace: with several jobs, of one that has begun. */
export interface Cancel {
  workspace: number;
  /** Milliseconds after the beginning. */
  ms: number;
  /** What is done after it: what was submitted is collected by resuming, or the manifest is run once more. */
  after: "collect" | "run";
}

/** In some runs one of them, and sometimes a crash just when it is carried out. */
export function cancelOf(
  lot: Chance,
  { workspaces }: Pick<Scenario, "workspaces">,
): { cancel: Cancel; faults: PlannedFault[] } | null {
  if (!lot.is(0.12)) return null;
  const cancel: Cancel = {
    workspace: lot.whole(0, workspaces - 1),
    ms: lot.scale(2_000, lot.is(0.8) ? 600_000 : 7_200_000),
    after: lot.pick(["collect", "run"]),
  };
  const crash: PlannedFault = {
    at: "effect",
    effect: "store.together",
    nth: 1,
    fault: { kind: lot.pick(["crash", "power-cut"]), after: lot.is(0.5) },
  };
  return { cancel, faults: lot.is(0.3) ? [crash] : [] };
}

/**
 * The user who cancels a run: as `bulkgen cancel` does, by an order to the running process, on any job of the
 * workspace, again to the next one when that has died, or alone where none is there.
 */
export class Cancelling {
  /** Whose run is to be cancelled, and which one, once it is wanted. */
  private job: Job | null = null;
  private wanted: number | null = null;
  private isOver = false;
  private order: number | null = null;
  /** Wakes the running process, so that it checks for orders: otherwise it would check twice a second for days. */
  private ring: (() => void) | null = null;

  constructor(
    private readonly store: Store,
    private readonly jobs: readonly Job[],
    private readonly cancel: Cancel,
    private readonly clock: Clock,
    /** The time by the clock that nobody sets. */
    private readonly now: () => number,
    private readonly lot: Chance,
  ) {}

  /** It is wanted from now on. */
  async begin(isAtWork: boolean): Promise<void> {
    const begun = this.jobs.filter(({ run }) => run !== null);
    if (begun.length === 0) return;
    this.job = this.lot.pick(begun);
    this.wanted = this.job.run?.id ?? null;
    if (this.ring !== null) await this.give();
    else if (!isAtWork) await this.alone();
  }

  /** The orders of a process that is about to carry on a run. */
  async attend(process: Process, store: Store, session: Session): Promise<OrderPolling> {
    const asks = () => Promise.reject(new Error("nobody asks the service about a cancelled run"));
    const clock: Clock = {
      now: () => process.clock.now(),
      monotonic: () => process.clock.monotonic(),
      sleep: (_, signal) =>
        new Promise((resolve) => {
          this.ring = resolve;
          signal?.addEventListener("abort", () => resolve());
        }),
    };
    const account = { service: { taskRecord: asks }, models: asks } as unknown as Parameters<
      typeof pollOrders
    >[0]["account"];
    const noting: Store = {
      ...store,
      together: async (work) => {
        const result = await store.together(work);
        await this.note(this.now());
        return result;
      },
    };
    const attendance = await pollOrders({ store: noting, clock, session, account });
    if (!(await this.isSettled())) await this.give();
    return attendance;
  }

  /** The running process has ended. Of one that died the next may begin before that is noticed. */
  async ended(hasDied: boolean): Promise<void> {
    this.ring = null;
    await this.note();
    if (!hasDied || this.lot.is(0.5)) await this.alone();
  }

  /** How the job is continued, once its run is cancelled. */
  wayOf(job: Job): Scenario["again"] | null {
    if (job !== this.job || !isCancelled(job)) return null;
    return this.cancel.after === "run" ? "run" : "resume";
  }

  /** The job of which nothing is left to collect, and nothing else is wanted. */
  async done(): Promise<Job | null> {
    const { job, store } = this;
    if (!job?.run || this.wayOf(job) !== "resume") return null;
    return (await store.run(job.run.id))?.owes === false ? job : null;
  }

  private async alone(): Promise<void> {
    const { store, clock } = this;
    const run = this.wanted === null ? null : await store.run(this.wanted);
    if (run === null || (await this.isSettled())) return;
    if (this.order !== null) await store.withdraw(this.order);
    await store.together((changes) => applyRunOrder(changes, { clock, atWork: null }, run, { do: "cancel" }));
    await this.note();
    this.isOver = true;
  }

  /** A process may have died between the change and its report. */
  private async note(at = Number.NEGATIVE_INFINITY): Promise<void> {
    const { job, store } = this;
    const run = job?.run ? await store.run(job.run.id) : null;
    if (job && run?.state === "cancelled" && !isCancelled(job)) job.cancelled.set(run.id, at);
  }

  /** Nothing is wanted, or it was done. */
  private async isSettled(): Promise<boolean> {
    const outcome = this.order === null ? null : await this.store.outcomeOf(this.order);
    this.isOver ||= outcome?.kind === "done" || outcome?.kind === "refused";
    return this.wanted === null || this.isOver;
  }

  private async give(): Promise<void> {
    if (this.wanted === null) return;
    this.order = await this.store.give(this.wanted, { do: "cancel" });
    this.ring?.();
  }
}
