import { hostname } from "node:os";
import { EarlyExit, exitCode } from "../../../core/exit.js";
import type { Log } from "../../../core/ports/send.js";
import type { Machine } from "../../../machine.js";
import { deliver } from "../../../notify/deliver.js";
import { newsNotification } from "../../../notify/facts.js";
import { targetsOf } from "../../../notify/target.js";
import { runFlags } from "../../../options/run.js";
import type { ScheduleStartFlags } from "../../../options/schedule.js";
import { Daemon, type DaemonEvent, type ScheduledProcess } from "../../../schedule/daemon.js";
import { serveHealth, serveMetrics } from "../../../schedule/health.js";
import { launchScheduledRun } from "../../../schedule/launch.js";
import { whatToType } from "../../../schedule/scheduled-run.js";
import { takeLock } from "../../../store/lock.js";
import { NewerDatabase } from "../../../store/open.js";
import type { Schedule, Schedules } from "../../../store/schedules.js";
import { notAgreed } from "../../../trust/trust.js";
import { figuresOf, type RunFigures } from "../../../workspace/figures.js";
import type { Workspace } from "../../../workspace/workspace.js";
import { agreeToValues } from "../../output/agreement.js";
import { openLog } from "../../output/log.js";
import { originOf } from "../../output/notifier.js";
import { print } from "../../output/print.js";
import { schedulesFile, scheduleValue } from "../../settings/brought.js";
import { configFiles, folderValues, runFlagsOf } from "../../settings/settings.js";
import type { Call } from "../call.js";
import { daemonLock, whyNotAgreed, withSchedules, workspaceOfRuns } from "./place.js";

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
      "stopping: no scheduled run starts any more, and those in progress save what they have; the next daemon continues them. Press Ctrl-C again to quit now; items whose answers are lost may then be held.",
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
      await agreeToSchedules(schedules, workspace, machine);
      await runDaemon(flags, { machine, workspace, schedules, log }, stop);
    } finally {
      lock.release();
    }
  });
}

/** A daemon that could run nothing would be silent all night. Throws EarlyExit. */
async function agreeToSchedules(schedules: Schedules, workspace: Workspace, machine: Machine): Promise<void> {
  const file = schedulesFile(workspace);
  const values = (await schedules.all()).map((schedule) => scheduleValue(schedule, file));
  await agreeToValues(values, workspace, machine);
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
    launch(command, schedule) {
      const why = whyNotAgreed(schedule, place.workspace);
      return why === null
        ? launchScheduledRun(command, {
            program,
            root,
            environment: env,
            clock,
            watched: true,
            stderr,
            jsonLines: flags.logFormat === "json",
          })
        : refusedRun(why);
    },
    async whatToDo({ flags: given, manifest }, end) {
      const { sandbox = false } = runFlagsOf(given, await configFiles(root, env), env);
      return whatToType(end, { root, manifest, sandbox });
    },
    notify(schedule, event) {
      const sent = send(schedule, event, place).finally(() => sending.delete(sent));
      sending.add(sent);
    },
  });
  const health = await serveHealth({ daemon, schedules, clock, port: flags.port });
  try {
    const metrics =
      flags.metrics === undefined
        ? null
        : await serveMetrics(
            { schedules, runs: () => figures(place), now: () => clock.now() },
            flags.metrics,
          );
    try {
      const figuresAt = metrics === null ? "" : `, metrics at ${metrics.url}/metrics`;
      print(
        flags,
        machine,
        "schedule-start",
        { url: health.url, metrics: metrics?.url ?? null },
        () => `running the schedules of ${root} until Ctrl-C; health at ${health.url}/healthz${figuresAt}`,
      );
      await daemon.go(stop);
      await Promise.all(sending);
    } finally {
      await metrics?.close();
    }
  } finally {
    await health.close();
  }
}

/** The figures of all workspaces that the schedules use: for rehearsals and not. */
async function figures({ machine, workspace, schedules }: DaemonPlace): Promise<RunFigures[]> {
  const places = new Map<string, Workspace>();
  for (const schedule of await schedules.all()) {
    if (whyNotAgreed(schedule, workspace) !== null) continue;
    const place = await workspaceOfRuns(schedule, workspace, machine);
    places.set(place.stateFile, place);
  }
  const all: RunFigures[] = [];
  for (const place of places.values()) all.push(...(await figuresOf(place, machine.clock)));
  return all;
}

/** The end of a run that was not started. */
function refusedRun(note: string): ScheduledProcess {
  const nothing = { run: null, credits: null, archived: null, failed: null, held: null, resumeAt: null };
  return { stop() {}, ended: Promise.resolve({ ...nothing, exit: exitCode("usage"), note }) };
}

/**
 * The workspace of a schedule may be in a database that other machines share. If it cannot be used at all, nobody
 * claims the due times, and the process of the run says why.
 */
async function claimForAll(
  schedule: Schedule,
  dueAt: readonly number[],
  { machine, workspace }: DaemonPlace,
): Promise<ReadonlyMap<number, string>> {
  const { clock } = machine;
  try {
    const { database } = await workspaceOfRuns(schedule, workspace, machine);
    if (database === null) return new Map();
    const { claimOnServer } = await import("../../../store/postgres/scheduled-runs.js");
    const daemon = `${hostname()} (${workspace.root})`;
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
    const files = await configFiles(workspace.root, env);
    const { sharedFolder, root } = workspace;
    const ofFolder = folderValues(runFlags, {}, files, env);
    if (whyNotAgreed(schedule, workspace) !== null || notAgreed(sharedFolder, root, ofFolder).length > 0)
      return log.warn(
        { schedule: schedule.name },
        "its notifications are not sent: the folder sets what you have not agreed to on this machine; `bulkgen trust` shows it",
      );
    const flags = runFlagsOf(schedule.flags, files, env);
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
