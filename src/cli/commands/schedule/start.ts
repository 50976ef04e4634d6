import { hostname } from "node:os";
import { EarlyExit } from "../../../core/exit.js";
import type { Log } from "../../../core/ports/send.js";
import type { Workspace } from "../../../job/workspace/workspace.js";
import type { Machine } from "../../../machine.js";
import { deliver } from "../../../notify/deliver.js";
import { newsNotification } from "../../../notify/facts.js";
import { targetsOf } from "../../../notify/target.js";
import { Daemon, type DaemonEvent } from "../../../schedule/daemon.js";
import { serveHealth } from "../../../schedule/health.js";
import { launchScheduledRun } from "../../../schedule/launch.js";
import { takeLock } from "../../../store/lock.js";
import { NewerDatabase } from "../../../store/open.js";
import type { Schedule, Schedules } from "../../../store/schedules.js";
import type { ScheduleStartFlags } from "../../flags/schedule.js";
import { openLog } from "../../output/log.js";
import { originOf } from "../../output/notifier.js";
import { print } from "../../output/print.js";
import { configFiles, runFlagsOf } from "../../settings/settings.js";
import type { Call } from "../call.js";
import { daemonLock, withSchedules, workspaceOfRuns } from "./place.js";

/** What the daemon works with. */
interface DaemonPlace {
  machine: Machine;
  workspace: Workspace;
  schedules: Schedules;
  log: Log;
}

export async function startSchedules({ flags, machine }: Call<ScheduleStartFlags>): Promise<undefined> {
  const log = await openLog(flags, machine);
  const stop = machine.interrupt(() =>
    log.info(
      {},
      "stopping: no scheduled run starts any more, waiting for the running ones. Press Ctrl-C again to quit now.",
    ),
  );
  await withSchedules(flags, machine, async (schedules, workspace) => {
    const lock = takeLock(daemonLock(workspace));
    if (!lock) {
      throw new EarlyExit(
        "locked",
        `another daemon runs the schedules of ${workspace.root}. Nothing was started.`,
      );
    }
    try {
      await runDaemon(flags, { machine, workspace, schedules, log }, stop);
    } finally {
      lock.release();
    }
  });
}

async function runDaemon(flags: ScheduleStartFlags, place: DaemonPlace, stop: AbortSignal): Promise<void> {
  const { machine, schedules, log } = place;
  const { root } = place.workspace;
  const { clock, env, program, stderr } = machine;
  const sending = new Set<Promise<void>>();
  const daemon = new Daemon({
    schedules,
    clock,
    log,
    claimForAll: (schedule, dueAt) => claimForAll(schedule, dueAt, place),
    launch: (command) =>
      launchScheduledRun(command, { program, root, environment: env, clock, watched: true, stderr }),
    notify(schedule, event) {
      const sent = send(schedule, event, place).finally(() => sending.delete(sent));
      sending.add(sent);
    },
  });
  const health = await serveHealth({ daemon, schedules, clock, port: flags.port });
  print(
    flags,
    machine,
    "schedule-start",
    { url: health.url },
    () => `running the schedules of ${root} until Ctrl-C; health at ${health.url}/healthz`,
  );
  try {
    await daemon.go(stop);
    await Promise.all(sending);
  } finally {
    await health.close();
  }
}

/**
 * The workspace of a schedule may be in a database that other machines share. If it cannot be used at all, nobody
 * claims the due times, and the process of the run says why.
 */
async function claimForAll(
  schedule: Schedule,
  dueAt: readonly number[],
  { machine, workspace: { root } }: DaemonPlace,
): Promise<ReadonlyMap<number, string>> {
  const { clock } = machine;
  try {
    const { database } = await workspaceOfRuns(schedule, root, machine);
    if (database === null) return new Map();
    const { claimOnServer } = await import("../../../store/postgres/scheduled-runs.js");
    const daemon = `${hostname()} (${root})`;
    return await claimOnServer({ address: database, clock }, { schedule: schedule.name, dueAt, daemon });
  } catch (error) {
    if (error instanceof EarlyExit || error instanceof NewerDatabase) return new Map();
    throw error;
  }
}

/** Sends what no run can report, to the targets of the schedule. Never throws: a notification must not stop the daemon. */
async function send(
  schedule: Schedule,
  { event, dueAt, message }: DaemonEvent,
  { machine, workspace, log }: DaemonPlace,
): Promise<void> {
  const { env, clock, cwd } = machine;
  try {
    const flags = runFlagsOf(schedule.flags, await configFiles(workspace.root, env), env);
    const scheduled = { schedule: schedule.name, due: new Date(dueAt).toISOString() };
    const origin = originOf(workspace, flags.sandbox ?? false, scheduled);
    await deliver(targetsOf(flags, env), newsNotification(event, message, { origin }), {
      environment: env,
      clock,
      cwd,
      warn: (line) => log.warn({ schedule: schedule.name }, line),
    });
  } catch (error) {
    log.warn({ schedule: schedule.name }, `cannot send its notifications: ${(error as Error).message}`);
  }
}
