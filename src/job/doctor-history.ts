import { existsSync } from "node:fs";
import type { Clock } from "../clock.js";
import { type Check, fine, problem } from "../report/doctor.js";
import { wayOut } from "../store/way-out.js";
import { openWorkspace } from "../store/workspace.js";
import { lostHistory } from "./history.js";
import { outdatedHistory } from "./outdated.js";

import { madeWritable } from "./unwritable.js";
import type { Workspace } from "./workspace.js";

const rebuild = "restore it from a backup, or `bulkgen doctor --rebuild`; it knows what was paid for";

/** Whether the history is there, can be read, and is the newest. What to do where not depends on why. */
export async function history(workspace: Workspace, clock: Clock): Promise<Check> {
  const { stateFile } = workspace;
  const expected = "a history that can be read, or none yet";
  const lost = lostHistory(workspace);
  if (lost !== null) return problem("history", { expected, got: lost, todo: rebuild });
  if (!existsSync(stateFile)) return fine("history", expected, "none yet");
  try {
    const store = openWorkspace(workspace, clock);
    const outdated = await outdatedHistory(workspace, store).finally(() => store.close());
    if (outdated !== null) return problem("history", { expected, got: outdated, todo: rebuild });
    return fine("history", expected, stateFile);
  } catch (error) {
    const todo = wayOut(error) ?? systemTodo(error) ?? rebuild;
    return problem("history", { expected, got: (error as Error).message, todo });
  }
}

/** What to do where the system refused a file of the history; null where it was something else. */
function systemTodo(error: unknown): string | null {
  const { syscall, code, path } = error as NodeJS.ErrnoException;
  return syscall === undefined ? null : madeWritable(code, path ?? "its folder");
}
