import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { EarlyExit } from "../../../core/exit.js";
import { findWorkspace } from "../../../job/workspace/workspace.js";
import type { Desk } from "../../../sandbox/admin/desk.js";

/** A state that is kept nowhere. */
export const memory = ":memory:";

/** Flags by which a command finds the state of a sandbox. */
export interface StateFlags {
  state?: string;
  workspace?: string;
}

/** Adds the flags by which a command finds the state of a sandbox. */
export function withState(command: Command): Command {
  return command
    .option("--state <file>", "the sandbox's state (default: .bulkgen/sandbox/service.db of the workspace)")
    .option("--workspace <folder>", "the folder with .bulkgen/ (default: the nearest one upwards)");
}

/** The state file that the flags name. */
export function stateFile(flags: StateFlags): string {
  if (flags.state === memory) return memory;
  if (flags.state !== undefined) return resolve(flags.state);
  const { workspace: named } = flags;
  const hints = {
    cwd: process.cwd(),
    sandbox: true,
    env: process.env,
    ...(named === undefined ? {} : { named }),
  };
  return findWorkspace(hints).serviceFile;
}

/**
 * Opens the state for administration, while it is being served or not, and closes it after. It is only made where the
 * command is there to make something. Throws EarlyExit.
 */
export async function administer<Result>(
  flags: StateFlags,
  toMake: boolean,
  use: (desk: Desk) => Result,
): Promise<Result> {
  const file = stateFile(flags);
  if (file === memory) {
    throw new EarlyExit("usage", "--state: a state in memory is out of reach from here; use its dashboard");
  }
  if (!toMake && !existsSync(file)) {
    throw new EarlyExit(
      "usage",
      `there is no sandbox state ${file}; --state names another, bulkgen sandbox makes one`,
    );
  }
  const [{ openDesk }, { AdminProblem }, { systemClock, systemRandom }] = await Promise.all([
    import("../../../sandbox/admin/desk.js"),
    import("../../../sandbox/admin/problem.js"),
    import("../../../system.js"),
  ]);
  const desk = openDesk({ file, clock: systemClock, random: systemRandom });
  try {
    return use(desk);
  } catch (error) {
    if (error instanceof AdminProblem) throw new EarlyExit("usage", error.message);
    throw error;
  } finally {
    desk.close();
  }
}
