import type { SqliteState } from "../../service/state/sqlite-state.js";
import type { Journal } from "./journal.js";

/** What a person says became of a job whose answer was lost. */
export type PersonsWord =
  /** The provider has it, under this name. */
  | { kind: "found"; ref: string }
  /** The provider never took it, or has failed it. */
  | { kind: "failed" }
  /** Send it again; if the provider has it after all, it is paid for twice. */
  | { kind: "again" };

/**
 * Puts a person's word on record. A service that runs sees it within a few seconds; another one when it starts. Returns what is
 * wrong, or null.
 */
export function settleUnknown(
  { state, journal }: { state: SqliteState; journal: Journal },
  taskId: string,
  verdict: PersonsWord,
  now: number,
): string | null {
  return state.transact(() => {
    const job = journal.job(taskId);
    const task = state.task(taskId);
    if (!job || !task) return `there is no job ${taskId}. \`bulkgen serve jobs\` lists them.`;
    if (job.stage !== "unknown")
      return `what became of ${taskId} is not in doubt: it is ${job.stage}. Nothing was changed.`;
    if (verdict.kind === "found") {
      journal.update(taskId, {
        stage: "accepted",
        ref: verdict.ref,
        // The provider is asked what belongs to the name.
        resume: null,
        note: null,
      });
    } else if (verdict.kind === "again") {
      journal.update(taskId, { stage: "queued", submittedAt: null, note: null });
    } else {
      const error = "The provider did not make it.";
      state.commit([
        { kind: "outcome decided", taskId, outcome: "failed", error, dueAt: Math.max(task.dueAt, now) },
      ]);
      journal.update(taskId, { stage: "decided", endedAt: now, note: null });
    }
    return null;
  });
}
