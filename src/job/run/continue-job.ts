import { jobFolder } from "../../archive/disk/job-folder.js";
import { EarlyExit } from "../../core/exit.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Run, Store } from "../../core/ports/store.js";
import { count } from "../../report/amounts.js";
import { heldAdvice, reasonLines, type Waiting } from "../../report/evidence.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { waitingIn } from "../evidence.js";
import { mustHaveRuns, refuseOutdated } from "../workspace/history.js";
import { type Hold, holdWorkspace, prepareOutFolder } from "../workspace/open.js";
import { execute } from "./execute.js";
import type { JobOptions, Outcome } from "./run-job.js";
import { isOwn } from "./unfinished.js";

/** What resume, retry and redo have in common: they go on with a run that is there, and read no manifest. */
export interface Continuation {
  /** Finds the run, before anything is locked or asked. Throws EarlyExit where there is none. */
  choose(store: Store): Promise<Run>;
  /** What changes before it goes on, with the workspace held and the account known; returns the run to carry on. */
  change?(hold: Hold, run: Run): Promise<Run>;
}

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
  const hold = await holdWorkspace({
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

/** The newest unfinished run, or the one of that number. */
export function unfinishedRun(which: number | undefined): Continuation["choose"] {
  return async (store) => {
    if (which !== undefined) return runNumbered(store, which);
    const run = await store.run("unfinished");
    if (run) return run;
    const newest = await store.run("newest");
    const held = newest ? await waitingIn(store, await store.items(newest.id, ["held"]), "held") : [];
    if (newest && held.length > 0) throw stillHeld(newest, held);
    throw new EarlyExit("done", "nothing to resume: every run of this workspace is finished");
  };
}

/** Nothing is left to do but what only a person can decide. */
function stillHeld({ id, options }: Run, held: readonly Waiting[]): EarlyExit {
  const lines = reasonLines(held).map((line) => `  ${line}`);
  return new EarlyExit(
    "held",
    [
      `nothing to resume: run ${id} is finished but for ${count(held.length, "held item")}, charged or perhaps charged:`,
      ...lines,
      `A person decides: ${heldAdvice(options.sandbox)}.`,
    ].join("\n"),
  );
}

/** The newest run, or the one of that number. */
export function newestRun(which: number | undefined): Continuation["choose"] {
  return async (store) => {
    const run = which === undefined ? await store.run("newest") : await runNumbered(store, which);
    if (run) return run;
    throw new EarlyExit("usage", "no run in this workspace yet; begin with `bulkgen run`");
  };
}

async function runNumbered(store: Store, which: number): Promise<Run> {
  const run = await store.run(which);
  if (run) return run;
  throw new EarlyExit("usage", `no run ${which} in this workspace; \`bulkgen status --all\` lists them`);
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
