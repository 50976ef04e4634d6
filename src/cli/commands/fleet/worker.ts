import { hostname } from "node:os";
import { defined } from "../../../core/defined.js";
import type { ExitName } from "../../../core/exit.js";
import { EarlyExit } from "../../../core/exit.js";
import type { Run } from "../../../core/ports/store.js";
import { isOwn } from "../../../job/paid/owner.js";
import { continueJob } from "../../../job/run/continue-job.js";
import { runWorker } from "../../../job/run/fleet-worker.js";
import type { Machine } from "../../../machine.js";
import type { WorkerFlags } from "../../../options/fleet.js";
import { count } from "../../../text/amounts.js";
import { terminalLines } from "../../../text/terminal.js";
import { openAccount } from "../../../workspace/account.js";
import { withStore } from "../../../workspace/state.js";
import type { Workspace } from "../../../workspace/workspace.js";
import { followed } from "../../output/follow.js";
import { jobOptions } from "../../output/job-options.js";
import { openLog } from "../../output/log.js";
import { connect } from "../../settings/connect.js";
import { workspaceOf, workspaceToChange } from "../../settings/workspace.js";
import type { Call } from "../call.js";

/** `bulkgen worker`. */
export async function worker({ flags, given, machine }: Call<WorkerFlags>): Promise<ExitName> {
  const isArchiving = flags.only === "archive";
  const isDownloading = flags.only !== "submit,poll";
  // A settings file may have it for all workers.
  if (!isDownloading && given.some(([name]) => name === "--downloads"))
    throw new EarlyExit(
      "usage",
      "--downloads cannot be used with --only submit,poll: that worker takes no downloads",
    );
  if (isArchiving && given.some(([name]) => name === "--lanes"))
    throw new EarlyExit("usage", "--lanes cannot be used with --only archive: that worker submits nothing");
  const workspace = isArchiving
    ? workspaceOf(flags, machine)
    : workspaceToChange(flags, machine, { make: true });
  const { clock, stderr } = machine;
  const say = (line: string) => {
    if (!flags.quiet) stderr.write(`bulkgen: ${terminalLines(line)}\n`);
  };
  const log = await openLog(flags, machine);
  const stop = machine.interrupt(() =>
    say(
      isDownloading
        ? "finishing the downloads in progress, no more are taken. Press Ctrl-C again to quit now."
        : "stopping",
    ),
  );
  if (!isArchiving && workspace.database !== null) await refuseOtherKey(flags, machine, workspace, stop);
  await runWorker({
    workspace,
    clock,
    log,
    stop,
    downloads: isDownloading ? flags.downloads : 0,
    environment: machine.env,
    does: isArchiving ? "archive" : isDownloading ? "standby" : "submit",
    onReady: () =>
      say(
        isDownloading
          ? `worker ${process.pid} on ${hostname()} is ready for ${count(flags.downloads, "download")} at once, into ${workspace.outFolder}`
          : `worker ${process.pid} on ${hostname()} stands by for a run whose process is gone, and takes no downloads`,
      ),
    takeOver: (run) => takeOver(run, flags, machine, workspace, stop, say),
  });
  return "done";
}

/** Goes on with a run as `bulkgen resume` does; the downloads are this worker's and the others'. */
async function takeOver(
  run: Run,
  called: WorkerFlags,
  machine: Machine,
  workspace: Workspace,
  stop: AbortSignal,
  say: (line: string) => void,
): Promise<void> {
  say(`going on with run ${run.id} of ${run.jobName}, whose process is gone`);
  const flags = { ...called, ifLocked: "fail" as const, work: false };
  const prepared = await jobOptions(flags, { ...machine, interrupt: () => stop }, workspace);
  const exit = await followed(prepared, flags, (show) =>
    continueJob(
      prepared.options,
      { choose: async (store) => withOwnFlags((await store.run(run.id)) ?? run, called, workspace) },
      async (outcome) => {
        const ended = await show(outcome);
        // A worker that is drained leaves the run to others that stand by.
        if (stop.aborted && outcome.execution.run.state === "interrupted")
          await outcome.opened.store.setRun(run.id, { state: "running", exit: null, endedAt: null });
        return ended;
      },
    ),
  );
  say(`run ${run.id} ended: ${exit}`);
}

/** The run with the lanes of this worker, and with the shared output folder by the name that it has on this machine. */
function withOwnFlags(run: Run, { out, lanes }: WorkerFlags, { outFolder }: Workspace): Run {
  return {
    ...run,
    ...(out === undefined ? {} : { outFolder }),
    options: { ...run.options, ...defined({ lanes }) },
  };
}

/** Throws EarlyExit if there is no key, or one that is not of the account whose run this worker may have to continue. */
async function refuseOtherKey(
  flags: WorkerFlags,
  machine: Machine,
  workspace: Workspace,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = machine;
  const run = await withStore(workspace, clock, async (store) => (await store.runs()).at(-1));
  if (flags.sandbox) return;
  const { connection, close } = await connect(flags, machine, workspace).catch((error: unknown) => {
    if (!(error instanceof EarlyExit)) throw error;
    throw new EarlyExit(error.exit, `${error.message} With --only archive a worker needs neither.`);
  });
  const undo = [close];
  try {
    if (run === undefined) return;
    const log = await openLog(flags, machine);
    const account = await openAccount({
      connection,
      place: workspace,
      clock,
      log,
      signal,
      onDailyLimit: "stop",
    });
    undo.push(() => account.close());
    const user = (await account.identify()).me.user.id;
    if (isOwn(run, { user, origin: account.origin })) return;
    throw new EarlyExit(
      "usage",
      `the runs in this database belong to another account: expected user ${run.accountId} at ${run.origin}, got user ${user} at ${connection.origin}. Nothing was submitted. Set a key of that user, or add --only archive.`,
    );
  } finally {
    while (undo.length > 0) await undo.pop()?.();
  }
}
