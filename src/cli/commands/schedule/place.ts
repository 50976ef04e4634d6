import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import type { ScheduleFlags } from "../../../options/schedule.js";
import { endNote, flagOf } from "../../../schedule/scheduled-run.js";
import { takeLock } from "../../../store/lock.js";
import { openSchedules, type Schedule, type Schedules } from "../../../store/schedules.js";
import { nearest } from "../../../text/nearest.js";
import { notAgreed } from "../../../trust/trust.js";
import type { Workspace } from "../../../workspace/workspace.js";
import { schedulesFile, scheduleValue } from "../../settings/brought.js";
import { configFiles, runFlagsOf } from "../../settings/settings.js";
import { flagsTo, workspaceOf, workspaceToChange } from "../../settings/workspace.js";

/** The lock of the workspace's one daemon. */
export function daemonLock({ stateFile }: Pick<Workspace, "stateFile">): string {
  return join(dirname(stateFile), "schedule.lock");
}

/**
 * What a person should know if no daemon runs the schedules of a workspace; null if one does, or if that cannot be seen
 * from here. With the state in a database, another host may have the daemon.
 */
export function daemonMissing(workspace: Workspace, machine: Machine): string | null {
  if (workspace.database !== null || daemonRuns(daemonLock(workspace)) !== false) return null;
  const there = flagsTo(workspace, false, machine);
  return `No daemon is running: \`bulkgen schedule start${there}\` starts the runs that are due, \`bulkgen schedule print${there}\` shows how to keep it running.`;
}

/** Null if this user may not ask. */
function daemonRuns(lockFile: string): boolean | null {
  if (!existsSync(lockFile)) return false;
  try {
    const lock = takeLock(lockFile);
    lock?.release();
    return lock === null;
  } catch {
    return null;
  }
}

/** Opens the schedules of the workspace that the flags name. Throws EarlyExit if there are none. */
export async function withSchedules<Result>(
  flags: Pick<ScheduleFlags, "workspace" | "databaseUrl">,
  machine: Machine,
  use: (schedules: Schedules, workspace: Workspace) => Promise<Result>,
): Promise<Result> {
  const workspace = workspaceToChange(flags, machine);
  const file = schedulesFile(workspace);
  if (!existsSync(file)) {
    throw new EarlyExit(
      "usage",
      `there is no schedule in ${workspace.root}. \`bulkgen schedule add\` adds one.`,
    );
  }
  const schedules = openSchedules(file, machine.clock);
  try {
    return await use(schedules, workspace);
  } finally {
    schedules.close();
  }
}

/** Why a schedule that came with a folder does nothing yet; null once this user has added it, or agreed to it. */
export function whyNotAgreed(schedule: Schedule, workspace: Workspace): string | null {
  const { sharedFolder, root } = workspace;
  const value = scheduleValue(schedule, schedulesFile(workspace));
  if (notAgreed(sharedFolder, root, [value]).length === 0) return null;
  return `the schedule ${schedule.name} was not added on this machine, and you have not agreed to it: \`bulkgen trust\` shows what it would run`;
}

/**
 * The workspace of a schedule's runs: for rehearsals or not, in files or in a database. Throws EarlyExit, also for a
 * schedule that nobody has agreed to: it may name a database.
 */
export async function workspaceOfRuns(
  schedule: Schedule,
  place: Workspace,
  machine: Machine,
): Promise<Workspace> {
  const why = whyNotAgreed(schedule, place);
  if (why !== null) throw new EarlyExit("usage", why);
  const { env } = machine;
  const { root } = place;
  const { flags } = schedule;
  const { sandbox = false, databaseUrl } = runFlagsOf(flags, await configFiles(root, env), env);
  return workspaceOf(
    { workspace: root, sandbox, ...(databaseUrl === undefined ? {} : { databaseUrl }) },
    machine,
  );
}

/** Why the unfinished runs of a schedule that is changed or removed end, and what continues them. */
export async function endNoteOf(
  what: "changed" | "removed",
  schedule: Schedule,
  place: Workspace,
  machine: Machine,
): Promise<string> {
  // Nobody may read the settings of a schedule that nobody has agreed to.
  const workspace =
    whyNotAgreed(schedule, place) === null ? await workspaceOfRuns(schedule, place, machine) : place;
  return endNote(what, flagsTo(workspace, flagOf(schedule, "--sandbox") !== null, machine));
}

/** The schedule with this name. Throws EarlyExit, with the nearest name, if there is none. */
export async function scheduleNamed(schedules: Schedules, name: string): Promise<Schedule> {
  const all = await schedules.all();
  const found = all.find((schedule) => schedule.name === name);
  if (found) return found;
  const names = all.map((schedule) => schedule.name);
  const near = nearest(name, names);
  const known = names.length === 0 ? "There are none." : `There are: ${names.join(", ")}.`;
  throw new EarlyExit(
    "usage",
    `there is no schedule ${JSON.stringify(name)}. ${near ? `Did you mean ${near}?` : known}`,
  );
}
