import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { EarlyExit } from "../../../core/exit.js";
import type { Workspace } from "../../../job/workspace/workspace.js";
import type { Schedule, Schedules } from "../../../store/schedules.js";
import { systemClock } from "../../../system.js";
import { nearest } from "../../../text/nearest.js";
import { settledWorkspace } from "../../output/session.js";

/** Flags of every command about schedules. */
export interface PlaceFlags {
  workspace?: string;
  json?: boolean;
}

export function withPlace(command: Command): Command {
  return command
    .option("--workspace <folder>", "the folder with .bulkgen/ (default: found from here upwards)")
    .option("--json", "one JSON document on stdout");
}

/** Where a workspace keeps its schedules; real ones and rehearsals lie together, as each names its service itself. */
export function schedulesFile({ stateFile }: Pick<Workspace, "stateFile">): string {
  return join(dirname(stateFile), "schedules.db");
}

/** The lock of the one daemon that a workspace has. */
export function daemonLock({ stateFile }: Pick<Workspace, "stateFile">): string {
  return join(dirname(stateFile), "schedule.lock");
}

/** Opens the schedules of the workspace that the flags name. Throws EarlyExit where there are none. */
export async function withSchedules<Result>(
  flags: PlaceFlags,
  use: (schedules: Schedules, workspace: Workspace) => Promise<Result>,
): Promise<Result> {
  const workspace = settledWorkspace({ logLevel: "warn", ...flags });
  const file = schedulesFile(workspace);
  if (!existsSync(file)) {
    throw new EarlyExit("usage", `no schedule in ${workspace.root}; \`bulkgen schedule add\` makes one`);
  }
  const { openSchedules } = await import("../../../store/schedules.js");
  const schedules = openSchedules(file, systemClock);
  try {
    return await use(schedules, workspace);
  } finally {
    schedules.close();
  }
}

/** The schedule of that name. Throws EarlyExit, with the nearest name, where there is none. */
export async function scheduleNamed(schedules: Schedules, name: string): Promise<Schedule> {
  const all = await schedules.all();
  const found = all.find((schedule) => schedule.name === name);
  if (found) return found;
  const names = all.map((schedule) => schedule.name);
  const near = nearest(name, names);
  const known = names.length === 0 ? "there is none" : `there are ${names.join(", ")}`;
  throw new EarlyExit(
    "usage",
    `no schedule ${JSON.stringify(name)}: ${near ? `did you mean ${near}?` : known}`,
  );
}
