import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { type Command, Option } from "commander";
import { EarlyExit } from "../../../core/exit.js";
import type { Flag, Schedule } from "../../../store/schedules.js";
import { systemClock } from "../../../system.js";
import { givenFlags } from "../../flags/given.js";
import { readingOf } from "../../flags/manifest.js";
import { withRun } from "../../flags/run.js";
import { oneOf } from "../../flags/values.js";
import type { RunFlags } from "../../output/session.js";
import { settledWorkspace, workspaceOf } from "../../output/session.js";
import { schedulesFile } from "./place.js";

interface AddFlags extends RunFlags {
  cron: string;
  tz?: string;
  missed: Schedule["missed"];
}

/** Flags that belong to the adding, not to the nights; a night consents by being there. */
const ofAdding = ["--cron", "--tz", "--missed", "--workspace", "--json", "--quiet", "--yes", "--events"];

export function defineScheduleAdd(schedule: Command): void {
  const command = withRun(schedule.command("add").argument("<name>", "name of the schedule"))
    .description("add a schedule, with the flags that every night's run is given")
    .requiredOption("--cron <line>", 'when: minute hour day month weekday, such as "0 2 * * *"')
    .option("--tz <zone>", "the zone of that time, such as Europe/Berlin (default: this machine's)")
    .addOption(
      new Option(
        "--missed <what>",
        "nights that nobody was there for: once (the newest is caught up) or skip",
      )
        .argParser(oneOf("once", "skip"))
        .default("once"),
    );
  const given = givenFlags(command, ofAdding);
  command.action((name: string, manifest: string, flags: AddFlags) => add(name, manifest, flags, given));
}

async function add(name: string, manifest: string, flags: AddFlags, given: readonly Flag[]): Promise<void> {
  checkName(name);
  if (manifest === "-")
    throw new EarlyExit("usage", "manifest: expected a file; nobody feeds standard input at night");
  const [{ checkLine }, { scheduledEdition, scheduledEnd }, { openSchedules }] = await Promise.all([
    import("../../../schedule/due.js"),
    import("../../../schedule/night.js"),
    import("../../../store/schedules.js"),
  ]);
  const now = systemClock.now();
  // Rehearsals lie apart, their schedules do not.
  const real = { ...flags, sandbox: false };
  const { root } = workspaceOf(real, manifest);
  const path = resolve(manifest);
  const below = relative(root, path);
  const schedule: Schedule = {
    name,
    manifest: below.startsWith("..") ? path : below,
    cron: flags.cron,
    zone: flags.tz ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    flags: given,
    missed: flags.missed,
    seenUntil: now,
  };
  checkLine(schedule, now);
  if (flags.until?.includes("T"))
    throw new EarlyExit("usage", `--until: expected a time of day such as 06:00, got ${flags.until}`);
  if (flags.fresh && flags.edition !== undefined)
    throw new EarlyExit("usage", "--fresh and --edition: expected one of them; both name the edition");
  scheduledEdition(schedule, now);
  scheduledEnd(schedule, now);
  await checkManifest(path, flags);
  if (flags.notify) (await import("../../../notify/target.js")).targetsOf(flags, process.env);
  const schedules = openSchedules(
    schedulesFile(settledWorkspace(real, manifest, { make: true })),
    systemClock,
  );
  try {
    if (!(await schedules.add(schedule)))
      throw new EarlyExit(
        "usage",
        `there is a schedule ${name} already; \`bulkgen schedule remove ${name}\` first`,
      );
  } finally {
    schedules.close();
  }
  const { showSchedule } = await import("./show.js");
  await showSchedule(name, { workspace: root, ...(flags.json ? { json: true } : {}) });
  if (!flags.json)
    process.stdout.write(
      "`bulkgen schedule start` runs it; `bulkgen schedule print` shows how to keep that running.\n",
    );
}

function checkName(name: string): void {
  if (/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(name)) return;
  throw new EarlyExit(
    "usage",
    `schedule name: expected letters, digits, dots, dashes and underscores, got ${JSON.stringify(name)}`,
  );
}

/** A manifest that cannot be read now can not be read at night either. Throws EarlyExit. */
async function checkManifest(path: string, flags: AddFlags): Promise<void> {
  if (!existsSync(path)) throw new EarlyExit("usage", `${path}: expected a manifest, found no file`);
  const [{ checkedManifest }, { manifestProblems }] = await Promise.all([
    import("../../../job/run/check-manifest.js"),
    import("../../../job/run/prepare.js"),
  ]);
  const { problems, rows } = await checkedManifest(path, readingOf(flags));
  if (problems.length > 0 && (rows === 0 || !flags.skipInvalid)) throw manifestProblems(problems);
}
