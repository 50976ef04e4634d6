import { existsSync, statSync } from "node:fs";
import type { Clock } from "../../clock.js";
import type { Store } from "../../core/ports/store.js";
import { wayOut } from "../../store/open.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { isRehearsal, lostHistory, outdatedHistory } from "../workspace/history.js";

import { madeWritable } from "../workspace/unwritable.js";
import type { Workspace } from "../workspace/workspace.js";
import { type Check, fine, problem, warning } from "./check.js";

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
    try {
      const outdated = await outdatedHistory(workspace, store);
      if (outdated !== null) return problem("history", { expected, got: outdated, todo: rebuild });
      return (await withoutReceipts(workspace, store)) ?? fine("history", expected, stateFile);
    } finally {
      store.close();
    }
  } catch (error) {
    const todo = wayOut(error) ?? systemTodo(error) ?? rebuild;
    return problem("history", { expected, got: (error as Error).message, todo });
  }
}

/** A whole history whose second memory is gone; null where it is there, or there is nothing to remember. */
async function withoutReceipts(workspace: Workspace, store: Store): Promise<Check | null> {
  const { stateFile, receiptsFile } = workspace;
  const there = (statSync(receiptsFile, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (there || isRehearsal(workspace) || !(await hasPaid(store))) return null;
  return warning("history", {
    expected: "a history, and its receipts beside it",
    got: `${receiptsFile} is missing: only ${stateFile} knows what was paid for, and if it were damaged, nothing but what is in the archive would come back`,
    todo: "restore it from a backup; where there is none, keep a copy of the database, and do not rebuild that while it is whole. The next run begins new receipts",
  });
}

async function hasPaid(store: Store): Promise<boolean> {
  for (const run of await store.runs()) {
    if ((await store.items(run.id)).some((item) => item.attempted)) return true;
  }
  return false;
}

/** What to do where the system refused a file of the history; null where it was something else. */
function systemTodo(error: unknown): string | null {
  const { syscall, code, path } = error as NodeJS.ErrnoException;
  return syscall === undefined ? null : madeWritable(code, path ?? "its folder");
}
