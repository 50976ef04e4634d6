import { join } from "node:path";
import type { Clock } from "../clock.js";
import type { StatusFacts } from "../report/status.js";
import { takeLock } from "../store/lock.js";
import { openWorkspace } from "../store/workspace.js";
import type { Workspace } from "./workspace.js";

const troubled = ["failed", "held", "unknown", "overdue"];

/** Where a run stands, read from the workspace alone. Null when there is no such run. */
export async function statusOf(
  workspace: Workspace,
  which: number | "newest",
  clock: Clock,
): Promise<StatusFacts | null> {
  const store = openWorkspace(workspace.stateFile, clock);
  try {
    const run = await store.run(which);
    if (!run) return null;
    const items = await store.items(run.id);
    const { charged, pending } = await store.spending(run.id);
    return {
      run: run.id,
      job: run.jobName,
      state: run.state,
      alive: isHeld(workspace.lockFile),
      startedAt: run.startedAt,
      exit: run.exit,
      counts: await store.counts(run.id),
      spent: charged,
      pending,
      requests: run.requests,
      folder: join(run.outFolder, run.jobName),
      trouble: items
        .filter((item) => troubled.includes(item.state))
        .map(({ rowNumber, rowId, state, note }) => ({ rowNumber, rowId, state, reason: note ?? "" })),
    };
  } finally {
    store.close();
  }
}

/** Whether some process holds the lock now. */
function isHeld(lockFile: string): boolean {
  const lock = takeLock(lockFile);
  lock?.release();
  return lock === null;
}
