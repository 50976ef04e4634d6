import { type Effect, type Rule, type Trip, Violation } from "./watch.js";
import { isCancelled, type Job, type Workspace } from "./workspace.js";

/** Nothing more is submitted for a run that was cancelled, but what its process was just about to send. */
export class CancelRules implements Rule {
  constructor(
    private readonly now: () => number,
    private readonly workspaces: readonly Workspace[],
  ) {}

  done({ sender, name, values }: Effect): void {
    if (name !== "store.cancelRun") return;
    const run = Number(values[0]);
    // A process that runs one job is told to cancel the run of another one too.
    const job = this.workspaces[sender.workspace]?.jobs.find((one) => one.run?.id === run);
    if (job && !isCancelled(job)) job.cancelled.set(run, this.now());
  }

  sent({ sender, endpoint, item }: Trip): void {
    if (endpoint !== "generate") return;
    const { jobs } = this.workspaces[sender.workspace] as Workspace;
    const { run, cancelled } = jobs[sender.job] as Job;
    const at = run === null ? undefined : cancelled.get(run.id);
    // What leaves at the same instant was begun before, and is waited for.
    if (at !== undefined && this.now() > at)
      throw new Violation("P2", `a POST for ${item} left after its run had been cancelled`);
  }
}
