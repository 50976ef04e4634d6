import type { Clock } from "../../clock.js";
import type { SqliteState } from "../../service/state/sqlite-state.js";
import type { Change, TaskRecord } from "../../service/state/state.js";
import type { JobChange, JobRecord, Journal } from "./journal.js";
import { retryWaits } from "./waits.js";

export interface RecordParts {
  clock: Clock;
  state: SqliteState;
  journal: Journal;
  /** The change that decides a task. */
  decision: (task: Pick<TaskRecord, "id" | "dueAt">, error: string | null, outputs?: string[]) => Change;
  /** Does the work in a transaction, and resolves when it is committed. */
  commit: (work: () => void) => Promise<void>;
  onError: (error: Error) => void;
}

/** Puts on record what becomes of jobs, each change in a transaction of its own. */
export class JobRecords {
  constructor(
    private readonly parts: RecordParts,
    private readonly closing: AbortSignal,
  ) {}

  job(taskId: string): JobRecord | undefined {
    return this.parts.journal.job(taskId);
  }

  task(taskId: string): TaskRecord | undefined {
    return this.parts.state.task(taskId);
  }

  update(taskId: string, change: JobChange): Promise<void> {
    return this.parts.commit(() => this.parts.journal.update(taskId, change));
  }

  /** What the provider has said: tried again while the disk is full. */
  insist(taskId: string, change: JobChange): Promise<void> {
    return this.untilCommitted(() => this.parts.journal.update(taskId, change));
  }

  /** The task is completed, with outputs of these extensions; tried again while the disk is full. */
  complete(task: TaskRecord, extensions: string[], change: JobChange): Promise<void> {
    return this.untilCommitted(() => this.decide(task, null, extensions, { ...change, note: null }));
  }

  /** The task has failed, and its credits are given back once. */
  fail(task: TaskRecord, error: string, note: string | null): Promise<void> {
    return this.parts.commit(() => this.decide(task, error, undefined, { note }));
  }

  private decide(
    task: TaskRecord,
    error: string | null,
    extensions: string[] | undefined,
    change: JobChange,
  ): void {
    if (this.job(task.id)?.stage === "decided") return;
    this.parts.state.commit([this.parts.decision(task, error, extensions)]);
    this.parts.journal.update(task.id, { ...change, stage: "decided", endedAt: this.parts.clock.now() });
  }

  private async untilCommitted(work: () => void): Promise<void> {
    for (const waitMs of retryWaits()) {
      try {
        await this.parts.commit(work);
        return;
      } catch (error) {
        if (this.closing.aborted) throw error;
        this.parts.onError(error as Error);
        await this.parts.clock.sleep(waitMs, this.closing);
      }
    }
  }
}
