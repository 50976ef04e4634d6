import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import { AdminProblem, type Desk, openDesk } from "../../../sandbox/admin/desk.js";
import type { StateFlags } from "../../flags/sandbox.js";
import { workspaceOf } from "../../settings/workspace.js";

/** State that is not saved. */
export const memory = ":memory:";

/** The state file that the flags name. */
export function stateFile({ state, ...place }: StateFlags, machine: Machine): string {
  if (state === memory) return memory;
  if (state !== undefined) return resolve(machine.cwd, state);
  return workspaceOf({ ...place, sandbox: true }, machine).serviceFile;
}

/**
 * Opens the state for administration, whether it is being served or not, and closes it afterwards. Creates it only with
 * `create`. Throws EarlyExit.
 */
export function administer<Result>(
  flags: StateFlags,
  machine: Machine,
  create: boolean,
  use: (desk: Desk) => Result,
): Result {
  const file = stateFile(flags, machine);
  if (file === memory) {
    throw new EarlyExit(
      "usage",
      "--state: state in memory cannot be changed from here. Use the sandbox's dashboard.",
    );
  }
  if (!create && !existsSync(file)) {
    throw new EarlyExit(
      "usage",
      `there is no sandbox state ${file}. Choose another with --state, or create it with bulkgen sandbox.`,
    );
  }
  const { clock, random } = machine;
  const desk = openDesk({ file, clock, random });
  try {
    return use(desk);
  } catch (error) {
    if (error instanceof AdminProblem) throw new EarlyExit("usage", error.message);
    throw error;
  } finally {
    desk.close();
  }
}
