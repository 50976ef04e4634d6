import { type Command, Option } from "commander";
import { EarlyExit } from "../../../core/exit.js";
import type { Log } from "../../../core/ports/send.js";
import type { Workspace } from "../../../job/workspace/workspace.js";
import { packageFile } from "../../../package-file.js";
import type { DaemonEvent } from "../../../schedule/daemon.js";
import type { Schedule, Schedules } from "../../../store/schedules.js";
import { systemClock } from "../../../system.js";
import { wholeNumber } from "../../flags/values.js";
import { interruption } from "../../output/signals.js";
import { daemonLock, type PlaceFlags, withPlace, withSchedules } from "./place.js";

interface StartFlags extends PlaceFlags {
  port: number;
  logLevel: string;
}

/** What a night's process is started with. */
export const thisProgram: [string, string] = [process.execPath, packageFile("dist/bin/bulkgen.js")];

export function defineScheduleStart(schedule: Command): void {
  withPlace(schedule.command("start"))
    .description("run the schedules of this workspace until SIGTERM or Ctrl-C")
    .addOption(
      new Option("--port <n>", "port of /healthz on 127.0.0.1")
        .argParser(wholeNumber)
        .default(0, "any free one"),
    )
    .option("--log-level <level>", "debug, info, warn, error or silent", "info")
    .action(start);
}

async function start(flags: StartFlags): Promise<void> {
  const [{ takeLock }, { openLog }] = await Promise.all([
    import("../../../store/lock.js"),
    import("../../output/log.js"),
  ]);
  const log = await openLog(flags.logLevel);
  const stop = interruption(() =>
    log.info({}, "no night begins any more; what is at work ends in good order; again to end at once"),
  );
  await withSchedules(flags, async (schedules, workspace) => {
    const lock = takeLock(daemonLock(workspace));
    if (!lock) {
      throw new EarlyExit(
        "locked",
        `another daemon runs the schedules of ${workspace.root}. Nothing was started.`,
      );
    }
    try {
      await serveNights(flags, schedules, workspace, log, stop);
    } finally {
      lock.release();
    }
  });
}

async function serveNights(
  flags: StartFlags,
  schedules: Schedules,
  { root }: Workspace,
  log: Log,
  stop: AbortSignal,
): Promise<void> {
  const [{ Daemon }, { launchScheduledRun }, { serveHealth }] = await Promise.all([
    import("../../../schedule/daemon.js"),
    import("../../../schedule/launch.js"),
    import("../../../schedule/health.js"),
  ]);
  const telling = new Set<Promise<void>>();
  const daemon = new Daemon({
    schedules,
    clock: systemClock,
    log,
    launch: (command) =>
      launchScheduledRun(command, {
        program: thisProgram,
        root,
        environment: process.env,
        clock: systemClock,
        watched: true,
      }),
    notify(schedule, notice) {
      const told = tell(schedule, notice, root, log).finally(() => telling.delete(told));
      telling.add(told);
    },
  });
  const health = await serveHealth({ daemon, schedules, clock: systemClock, port: flags.port });
  const text = flags.json
    ? JSON.stringify({ url: health.url })
    : `schedules of ${root} run until Ctrl-C; ${health.url}/healthz shows their state`;
  process.stdout.write(`${text}\n`);
  try {
    await daemon.go(stop);
    await Promise.all(telling);
  } finally {
    await health.close();
  }
}

/** Tells what no run can tell, by the schedule's own notices. Never throws: a notice holds nothing up. */
async function tell(schedule: Schedule, notice: DaemonEvent, root: string, log: Log): Promise<void> {
  try {
    const [{ deliver }, { scheduledRunNotification }, { targetsOf }, { configFiles, runFlagsOf }] =
      await Promise.all([
        import("../../../notify/deliver.js"),
        import("../../../notify/facts.js"),
        import("../../../notify/target.js"),
        import("../../settings/settings.js"),
      ]);
    const flags = runFlagsOf(schedule.flags, await configFiles(root, process.env), process.env);
    const { event, dueAt, message } = notice;
    await deliver(
      targetsOf(flags, process.env),
      scheduledRunNotification(event, { schedule: schedule.name, dueAt, message }),
      {
        environment: process.env,
        clock: systemClock,
        warn: (line) => log.warn({ schedule: schedule.name }, line),
      },
    );
  } catch (error) {
    log.warn({ schedule: schedule.name }, `its notices cannot be sent: ${(error as Error).message}`);
  }
}
