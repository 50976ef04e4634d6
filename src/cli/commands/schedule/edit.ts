import { resolve } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import { nameOf } from "../../../options/definition.js";
import type { RunFlags } from "../../../options/run.js";
import type { ScheduleEditFlags, ScheduleFlags } from "../../../options/schedule.js";
import { localText, nextDue } from "../../../schedule/due.js";
import { flagOf } from "../../../schedule/scheduled-run.js";
import { listedSchedule } from "../../../schedule/upcoming.js";
import type { Flag, Schedule, ScheduleChange } from "../../../store/schedules.js";
import { nearest } from "../../../text/nearest.js";
import { agree } from "../../../trust/trust.js";
import { print } from "../../output/print.js";
import { scheduleValue } from "../../settings/brought.js";
import { configFiles, runAttribute, runFlagsOf } from "../../settings/settings.js";
import { flagsTo } from "../../settings/workspace.js";
import type { Call } from "../call.js";
import { checkManifest, checkSchedule, keptFlags, manifestIn, refuseStream } from "./add.js";
import { endNoteOf, scheduleNamed, whyNotAgreed, withSchedules } from "./place.js";
import { showSchedules, upcomingOf } from "./show.js";

/** Changes what is named of a schedule. Its runs, its name and all else of it stay. */
export async function editSchedule({
  flags,
  args,
  given,
  machine,
}: Call<ScheduleEditFlags, { name: string; manifest?: string }>): Promise<undefined> {
  const { clock, cwd, env } = machine;
  const { name, manifest } = args;
  await withSchedules(flags, machine, async (schedules, workspace) => {
    const { root, sharedFolder } = workspace;
    const before = await scheduleNamed(schedules, name);
    // Whoever changes one flag of what came with a folder has not agreed to the others.
    const why = whyNotAgreed(before, workspace);
    if (why !== null) throw new EarlyExit("usage", `${why}. Nothing was changed.`);
    if (manifest !== undefined) refuseStream(manifest);
    const change: ScheduleChange = {
      ...(manifest === undefined ? {} : { manifest: manifestIn(root, resolve(cwd, manifest)) }),
      ...(flags.cron === undefined ? {} : { cron: flags.cron }),
      ...(flags.tz === undefined ? {} : { zone: flags.tz }),
      ...(flags.missed === undefined ? {} : { missed: flags.missed }),
      flags: changedFlags(before, keptFlags(given, cwd), flags.unset ?? []),
    };
    const isSame = Object.entries(change).every(
      ([key, value]) => JSON.stringify(before[key as keyof Schedule]) === JSON.stringify(value),
    );
    if (isSame)
      throw new EarlyExit(
        "usage",
        `nothing of ${name} is to be changed. Name what should be, such as --cron.`,
      );
    const after = { ...before, ...change };
    const files = await configFiles(root, env);
    const ofRuns = runFlagsOf(after.flags, files, env);
    checkSchedule(after, ofRuns, machine);
    if (manifest !== undefined || change.flags?.join() !== before.flags.join())
      await checkManifest(resolve(root, after.manifest), ofRuns, machine);
    // What the new line would have been due before now was not missed.
    const isOtherTime = after.cron !== before.cron || after.zone !== before.zone;
    // A run is known by its number, which in another state is that of another run.
    const isOtherPlace = placeOf(runFlagsOf(before.flags, files, env)) !== placeOf(ofRuns);
    const note = isOtherPlace ? await endNoteOf("changed", before, workspace, machine) : undefined;
    if (runFlagsOf(before.flags, files, env).sandbox && !ofRuns.sandbox)
      machine.stderr.write(
        `bulkgen: the runs of ${name} were rehearsals; from now on they spend credits, as shown below\n`,
      );
    await schedules.edit(name, { ...change, ...(isOtherTime ? { seenUntil: clock.now() } : {}) }, note);
    agree(sharedFolder, root, [scheduleValue(after, "")], clock.now());
  });
  await showSchedules({ flags, args: { name }, machine });
}

/** Which service and which state the runs use. */
function placeOf({ sandbox, baseUrl, databaseUrl }: RunFlags): string {
  return JSON.stringify([sandbox ?? false, baseUrl, databaseUrl]);
}

/** Its flags with those that are given, each in the place of what the schedule had of it. Throws EarlyExit. */
function changedFlags(
  { name, flags }: Pick<Schedule, "name" | "flags">,
  given: readonly Flag[],
  unset: readonly string[],
): Flag[] {
  const dropped = unset.map((word) => {
    const wanted = word.replace(/^--/, "");
    const known = flags.map(([flag]) => runAttribute(flag) ?? flag);
    const attribute = runAttribute(`--${wanted}`);
    if (attribute !== undefined && known.includes(attribute)) return attribute;
    const names = [...new Set(known.map(nameOf))];
    const near = nearest(wanted, names);
    const has = names.length === 0 ? "it has no flags" : `it has ${names.join(", ")}`;
    const hint = near === undefined ? `; ${has}` : `. Did you mean ${near}?`;
    throw new EarlyExit("usage", `--unset: ${name} has no flag ${JSON.stringify(wanted)}${hint}`);
  });
  const replaced = new Set([...dropped, ...given.map(([flag]) => runAttribute(flag))]);
  return [...flags.filter(([flag]) => !replaced.has(runAttribute(flag))), ...given];
}

export async function pauseSchedule(call: Call<ScheduleFlags, { name: string }>): Promise<undefined> {
  await switchSchedule(call, true);
}

export async function resumeSchedule(call: Call<ScheduleFlags, { name: string }>): Promise<undefined> {
  await switchSchedule(call, false);
}

async function switchSchedule(
  { flags, args: { name }, machine }: Call<ScheduleFlags, { name: string }>,
  pauses: boolean,
): Promise<void> {
  const { clock } = machine;
  await withSchedules(flags, machine, async (schedules, workspace) => {
    const before = await scheduleNamed(schedules, name);
    const isNew = pauses === (before.pausedAt === null);
    const now = clock.now();
    // What came due meanwhile was not missed.
    if (isNew) await schedules.edit(name, pauses ? { pausedAt: now } : { pausedAt: null, seenUntil: now });
    const upcoming = await upcomingOf(schedules, await scheduleNamed(schedules, name), workspace, machine);
    const { schedule, scheduledRuns } = upcoming;
    print(flags, machine, "schedule", listedSchedule(upcoming, now), () => {
      if (!pauses) {
        const next = nextDue(schedule, now);
        const when = next === null ? "it never comes due" : `its next run: ${localText(next, schedule.zone)}`;
        return `${name} ${isNew ? "is resumed" : "was not paused"}; ${when}`;
      }
      const there = flagsTo(workspace, false, machine);
      const isOpen = scheduledRuns.some(({ state }) => state === "running" || state === "waiting");
      const ofRun = flagsTo(workspace, flagOf(schedule, "--sandbox") !== null, machine);
      const open = isOpen ? `. What it has begun goes on; \`bulkgen pause${ofRun}\` stops that` : "";
      return `${name} ${isNew ? "is paused" : "was paused already"}: \`bulkgen schedule resume ${name}${there}\` starts its runs again${open}`;
    });
  });
}
