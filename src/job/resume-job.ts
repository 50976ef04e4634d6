import { EarlyExit } from "../core/exit.js";
import type { Run, Store } from "../core/store.js";
import { openWorkspace } from "../store/workspace.js";
import { execute } from "./execute.js";
import { holdWorkspace, prepareOutFolder } from "./open.js";
import type { JobOptions, Outcome } from "./run-job.js";
import { workspaceExists } from "./workspace.js";

/**
 * Goes on with an unfinished run under its own options, without reading the manifest. Throws EarlyExit when there is
 * none, or when the key belongs to somebody else.
 */
export async function resumeJob<Result>(
  options: JobOptions & { run?: number },
  use: (outcome: Outcome) => Promise<Result>,
): Promise<Result> {
  const startedAt = options.clock.now();
  const found = await lookUp(options);
  prepareOutFolder(found.outFolder);
  const hold = await holdWorkspace({ ...options, limits: found.options, signal: options.interrupt });
  try {
    const me = await hold.account.identify();
    if (me.user.id !== found.accountId || hold.connection.origin !== found.origin) {
      throw new EarlyExit(
        "usage",
        `run ${found.id} belongs to another account or service: expected user ${found.accountId} at ${found.origin}, ` +
          `got user ${me.user.id} at ${hold.connection.origin}. Nothing was sent for it.`,
      );
    }
    await hold.store.setRun(found.id, { state: "running", exit: null, endedAt: null });
    const run = { ...found, requests: found.requests + 1 };
    const before = (await hold.store.counts(run.id)).archived;
    const execution = await execute({ ...options, hold, run, plan: me.subscription?.plan ?? "Starter" });
    return await use({ execution, leftOut: 0, before, startedAt, hold });
  } finally {
    await hold.close();
  }
}

/** The run to go on with, looked up before anything is locked or asked. */
async function lookUp(options: JobOptions & { run?: number }): Promise<Run> {
  if (!workspaceExists(options.workspace)) {
    throw new EarlyExit(
      "usage",
      `no runs in ${options.workspace.root}: expected a folder in which bulkgen has run`,
    );
  }
  const store = openWorkspace(options.workspace.stateFile, options.clock);
  try {
    return await chosen(store, options.run);
  } finally {
    store.close();
  }
}

async function chosen(store: Store, which: number | undefined): Promise<Run> {
  const run = await store.run(which ?? "unfinished");
  if (run) return run;
  if (which !== undefined)
    throw new EarlyExit("usage", `no run ${which} in this workspace; \`bulkgen status\` shows the newest`);
  throw new EarlyExit("done", "nothing to resume: every run of this workspace is finished");
}
