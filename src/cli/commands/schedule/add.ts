import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import { checkedManifest } from "../../../job/run/plan-job.js";
import { manifestProblems } from "../../../job/run/prepare.js";
import type { Machine } from "../../../machine.js";
import { isOfFiles } from "../../../manifest/folder.js";
import { targetsOf } from "../../../notify/target.js";
import { readingOf } from "../../../options/manifest.js";
import type { RunFlags } from "../../../options/run.js";
import type { ScheduleAddFlags } from "../../../options/schedule.js";
import { checkLine, zoneHere } from "../../../schedule/due.js";
import { scheduledEdition, scheduledEnd } from "../../../schedule/scheduled-run.js";
import { type Flag, openSchedules, type Schedule } from "../../../store/schedules.js";
import { leaves } from "../../../text/within.js";
import { agree } from "../../../trust/trust.js";
import { schedulesFile, scheduleValue } from "../../settings/brought.js";
import { flagsTo, workspaceOf, workspaceToChange } from "../../settings/workspace.js";
import type { Call } from "../call.js";
import { showSchedules } from "./show.js";

/** Flags of adding a schedule, not of its runs; adding it is the consent to its runs. */
const ofAdding = [
  "--trust-address",
  "--cron",
  "--tz",
  "--missed",
  "--unset",
  "--workspace",
  "--json",
  "--quiet",
  "--yes",
  "--events",
];
const ofPaths = ["--out", "--api-key-file"];

export async function addSchedule({
  flags,
  args,
  given,
  machine,
}: Call<ScheduleAddFlags, { name: string; manifest: string }>): Promise<undefined> {
  const { clock, cwd, stdout } = machine;
  const { name, manifest } = args;
  checkName(name);
  refuseStream(manifest);
  const now = clock.now();
  // Rehearsals have a state of their own, but not their own schedules.
  const real = { ...flags, sandbox: false };
  const { root } = workspaceOf(real, machine, manifest);
  const path = resolve(cwd, manifest);
  const schedule: Schedule = {
    name,
    manifest: manifestIn(root, path),
    cron: flags.cron,
    zone: flags.tz ?? zoneHere(),
    flags: keptFlags(given, cwd),
    missed: flags.missed,
    seenUntil: now,
    pausedAt: null,
  };
  checkSchedule(schedule, flags, machine);
  await checkManifest(path, flags, machine);
  const place = workspaceToChange(real, machine, { manifest, make: true });
  const there = flagsTo(place, false, machine);
  const schedules = openSchedules(schedulesFile(place), clock);
  try {
    // What this user adds needs no question.
    const { sharedFolder } = place;
    if (await schedules.add(schedule)) agree(sharedFolder, root, [scheduleValue(schedule, "")], now);
    else
      throw new EarlyExit(
        "usage",
        `a schedule ${name} exists. \`bulkgen schedule edit ${name}${there}\` changes it; to replace it, run \`bulkgen schedule remove ${name}${there}\` first.`,
      );
  } finally {
    schedules.close();
  }
  const { databaseUrl, json } = flags;
  const shown = {
    workspace: root,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
    ...(json ? { json: true } : {}),
  };
  await showSchedules({ flags: shown, args: { name }, machine });
  if (!flags.json && place.database !== null)
    stdout.write(
      `\`bulkgen schedule start${there}\` runs it; \`bulkgen schedule print${there}\` shows how to keep that running.\n`,
    );
}

export function refuseStream(manifest: string): void {
  if (manifest === "-")
    throw new EarlyExit("usage", "manifest: expected a file; scheduled runs cannot read standard input");
}

export function manifestIn(root: string, path: string): string {
  return leaves(root, path) ? path : relative(root, path);
}

/** Throws EarlyExit for what its runs could not be started with. */
export function checkSchedule(
  schedule: Schedule,
  flags: Pick<RunFlags, "until" | "notify" | "smtpUrl" | "smtpFrom" | "notifyCommand">,
  { clock, env }: Machine,
): void {
  const now = clock.now();
  checkLine(schedule, now);
  if (flags.until?.includes("T"))
    throw new EarlyExit("usage", `--until: expected a time of day such as 06:00, got ${flags.until}`);
  scheduledEdition(schedule, now);
  scheduledEnd(schedule, now);
  if (flags.notify) targetsOf(flags, env);
}

/** The flags for each run. Paths are absolute, because the runs start elsewhere. */
export function keptFlags(given: readonly Flag[], cwd: string): Flag[] {
  return given
    .filter(([flag]) => !ofAdding.includes(flag))
    .map(([flag, value]): Flag => {
      if (value === undefined) return [flag];
      return [flag, ofPaths.includes(flag) ? resolve(cwd, value) : value];
    });
}

function checkName(name: string): void {
  if (/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(name)) return;
  throw new EarlyExit(
    "usage",
    `schedule name: expected letters, digits, dots, dashes and underscores, got ${JSON.stringify(name)}`,
  );
}

/** A manifest that cannot be read now cannot be read by a scheduled run either. Throws EarlyExit. */
export async function checkManifest(path: string, flags: RunFlags, machine: Machine): Promise<void> {
  if (!existsSync(path) && !isOfFiles(path))
    throw new EarlyExit("usage", `${path}: expected a manifest, found no file`);
  const { problems, rows } = await checkedManifest(path, readingOf(flags, machine));
  if (problems.length > 0 && (rows === 0 || !flags.skipInvalid)) throw manifestProblems(problems);
}
