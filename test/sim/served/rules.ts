import type { Journal } from "../../../src/serve/works/journal.js";
import type { SqliteState } from "../../../src/service/state/sqlite-state.js";
import type { TaskRecord } from "../../../src/service/state/state.js";
import { userId } from "../service.js";
import { Violation } from "../watch.js";
import type { ServedCounts } from "./counts.js";
import type { Way } from "./models.js";
import type { Execution, Upstream, UpstreamRules } from "./upstream.js";

/** What a process of the service has on record. */
export interface Records {
  state: SqliteState;
  journal: Journal;
}

/** The promises of a served models file, looked at with each job that a provider takes and with each commit. */
export class ServedRules implements UpstreamRules {
  /** Jobs that a person has called failed, or has sent again. */
  readonly settled = new Set<string>();
  private readonly judged = new Set<string>();
  private unknown = new Set<string>();

  constructor(
    private readonly parts: {
      balanceMicro: number;
      upstream: () => Upstream;
      records: () => Records | null;
      figures: ServedCounts;
      fail: (violation: Violation) => void;
    },
  ) {}

  /** P1 */
  submitted(way: Way, jobId: string): void {
    const stage = this.parts.records()?.journal.job(jobId)?.stage;
    this.check(stage === "submitting", "P1", `${jobId} was sent (${way}) while its journal says ${stage}`);
  }

  /** P2 */
  accepted(execution: Execution): void {
    const { jobId, prompt, way } = execution;
    for (const earlier of this.parts.upstream().executions) {
      if (earlier.prompt !== prompt || earlier.isLetGo) continue;
      // What a program has made before its service died is gone, so only its last run counts.
      if (way === "program" && this.parts.upstream().executionOf(earlier.jobId) !== earlier) continue;
      const hasFailed =
        (earlier.isTold && earlier.end !== "made") || this.parts.upstream().refused.has(earlier.jobId);
      // A program costs nothing, and runs again for its own job if nothing of it is left.
      const isFree = way === "program" && earlier.jobId === jobId && (earlier.isTold || earlier.isStopped);
      const text = `${prompt} was executed twice (${way}), as ${earlier.jobId} and ${jobId}`;
      this.check(isFree || hasFailed, "P2", text);
    }
  }

  /** After each commit of the service. */
  committed({ state }: Records): void {
    const failed = state.db
      .prepare("select id from tasks where outcome = 'failed'")
      .pluck()
      .all() as string[];
    for (const id of failed) if (!this.judged.has(id)) this.judge(id);
    this.checkBalance(state);
    const unknown = state.db
      .prepare("select task_id from jobs where stage = 'unknown'")
      .pluck()
      .all() as string[];
    this.parts.figures.unknown += unknown.filter((id) => !this.unknown.has(id)).length;
    this.unknown = new Set(unknown);
  }

  /** P5: only the provider's word or a person's makes a task fail. */
  private judge(taskId: string): void {
    this.judged.add(taskId);
    const upstream = this.parts.upstream();
    const execution = upstream.executionOf(taskId);
    const isSaid = execution?.isTold && execution.end !== "made";
    const isKnown = isSaid || upstream.refused.has(taskId) || this.settled.has(taskId);
    this.check(isKnown === true, "P5", `${taskId} has failed, and no provider and no person says so`);
  }

  /** P8: what is gone from the account is what the tasks cost that are not given back. */
  private checkBalance(state: SqliteState): void {
    const { balanceMicro } = state.account(userId) ?? { balanceMicro: Number.NaN };
    const { spent, wrong } = state.db
      .prepare(
        `select coalesce(sum(cost_micro) filter (where refunded = 0), 0) as spent,
           count(*) filter (where refunded = 1 and outcome is not 'failed') as wrong from tasks`,
      )
      .get() as { spent: number; wrong: number };
    const text = `${this.parts.balanceMicro - balanceMicro} is gone, and tasks cost ${spent}`;
    this.check(balanceMicro + spent === this.parts.balanceMicro && wrong === 0, "P8", text);
  }

  private check(isKept: boolean, promise: string, message: string): void {
    if (isKept) return;
    const violation = new Violation(promise, message);
    this.parts.fail(violation);
    throw violation;
  }
}

export function tasksOf({ state }: Records): TaskRecord[] {
  const ids = state.db.prepare("select id from tasks order by created_at, id").pluck().all() as string[];
  return ids.map((id) => state.task(id) as TaskRecord);
}
