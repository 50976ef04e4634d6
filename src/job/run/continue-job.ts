import { jobFolder } from "../../archive/disk/names.js";
import { EarlyExit } from "../../core/exit.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Run } from "../../core/ports/store.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import type { Continuation } from "../orders/continuation.js";
import { mustHaveRuns, refuseOutdated } from "../workspace/history.js";
import { openWorkspaceSession, prepareOutFolder } from "../workspace/open.js";
import { execute } from "./execute.js";
import type { JobOptions, Outcome } from "./run-job.js";
import { isOwn } from "./unfinished.js";

/**
 * Carries on a run under its own options. Throws EarlyExit when there is none, or when the key belongs to somebody
 * else. `use` is handed the outcome while the workspace is still open.
 */
export async function continueJob<Result>(
  options: JobOptions,
  continuation: Continuation,
  use: (outcome: Outcome) => Promise<Result>,
): Promise<Result> {
  const startedAt = options.clock.now();
  const found = await lookUp(options, continuation);
  prepareOutFolder(jobFolder(found));
  const hold = await openWorkspaceSession({
    ...options,
    connect: () => options.connect(found.manifest),
    limits: found.options,
    onDailyLimit: found.options.onDailyLimit,
    signal: options.interrupt,
  });
  try {
    const reading = await hold.account.identify();
    checkOwner(found, reading.me.user.id, hold.connection.origin);
    const changed = (await continuation.change?.(hold, found)) ?? found;
    // A cancelled run is gone on with to collect what it owes, unless a person wants something of it again.
    const state = changed.state === "cancelled" ? "cancelled" : "running";
    await hold.store.setRun(changed.id, { state, exit: null, endedAt: null });
    const own = withDaily(changed.options, options);
    const run = { ...changed, state, options: own, requests: changed.requests + 1 } as const;
    const before = (await hold.store.counts(run.id)).archived;
    const execution = await execute({ ...options, ...reading, hold, run, inOrder: false });
    return await use({ execution, leftOut: 0, before, startedAt, hold });
  } finally {
    await hold.close();
  }
}

/** A run goes on under its own options; the day's cap is the account's, and holds as it is set now. */
function withDaily(own: RunOptions, { dailyCredits }: Pick<JobOptions, "dailyCredits">): RunOptions {
  return dailyCredits === undefined ? own : { ...own, dailyCredits };
}

async function lookUp({ workspace, clock }: JobOptions, { choose }: Continuation): Promise<Run> {
  mustHaveRuns(workspace);
  const store = openWorkspace(workspace, clock);
  try {
    await refuseOutdated(workspace, store);
    return await choose(store);
  } finally {
    store.close();
  }
}

function checkOwner(run: Run, user: string, origin: string): void {
  if (isOwn(run, { user, origin })) return;
  throw new EarlyExit(
    "usage",
    `run ${run.id} belongs to another account or service: expected user ${run.accountId} at ${run.origin}, ` +
      `got user ${user} at ${origin}. Nothing was sent for it.`,
  );
}
