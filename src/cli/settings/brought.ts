import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { runValues } from "../../job/run/run-values.js";
import type { Machine } from "../../machine.js";
import { runFlags } from "../../options/run.js";
import { readSchedules, type Schedule } from "../../store/schedules.js";
import { shellWord } from "../../text/shell.js";
import { type FolderValue, scheduleSetting } from "../../trust/trust.js";
import { withStore } from "../../workspace/state.js";
import { type Workspace, workspaceExists } from "../../workspace/workspace.js";
import { configFiles, folderValues } from "./settings.js";

/** Everything of a workspace's own files that does something outward, whether or not the user has agreed to it. */

/** The schedules of a workspace, real ones and rehearsals together: the flags of each say which it is. */
export function schedulesFile({ stateFile }: Pick<Workspace, "stateFile">): string {
  return join(dirname(stateFile), "schedules.db");
}

/** What a schedule will do, as a value of the folder that has it. */
export function scheduleValue(
  { name, manifest, cron, zone, missed, flags }: Schedule,
  file: string,
): FolderValue {
  const words = flags.flatMap(([flag, value]) => (value === undefined ? [flag] : [`${flag}=${value}`]));
  const command = ["bulkgen", "run", ...words, "--yes", "--", manifest].map(shellWord).join(" ");
  const value = `${shellWord(cron)} in ${shellWord(zone)}, missed runs: ${missed}, ${command}`;
  return { setting: scheduleSetting(name), value, from: file };
}

/** Its settings file, its schedules, and the runs that can be continued. */
export async function folderValuesOf(workspace: Workspace, machine: Machine): Promise<FolderValue[]> {
  const { root } = workspace;
  const files = await configFiles(root, machine.env);
  return [
    ...folderValues(runFlags, {}, files, machine.env),
    ...(await scheduleValues(workspace)),
    ...(await valuesOfRuns(workspace, machine)),
  ];
}

export async function scheduleValues(workspace: Workspace): Promise<FolderValue[]> {
  const file = schedulesFile(workspace);
  const schedules = readSchedules(file);
  if (schedules === null) return [];
  try {
    return (await schedules.all()).map((schedule) => scheduleValue(schedule, file));
  } finally {
    schedules.close();
  }
}

/** A database on a server did not come with the folder. */
async function valuesOfRuns(workspace: Workspace, { clock }: Machine): Promise<FolderValue[]> {
  if (workspace.database !== null || !workspaceExists(workspace) || !existsSync(workspace.root)) return [];
  const runs = await withStore(workspace, clock, (store) => store.runs());
  const all = runs.flatMap((run) => runValues(run, workspace));
  return [...new Map(all.map((each) => [`${each.setting} ${each.value}`, each])).values()];
}
