import { EarlyExit } from "../core/exit.js";
import type { Run } from "../core/ports/store.js";
import type { Store } from "../store/workspace/workspace.js";
import { count } from "../text/amounts.js";
import { sandboxFlag } from "../text/shell.js";
import {
  heldAdvice,
  reasonLines,
  taskInReceipts,
  tasksKnown,
  type WaitingItem,
  waitingIn,
} from "./evidence.js";
import { howToBegin } from "./history.js";
import type { LockOwner } from "./lock.js";
import type { Workspace } from "./workspace.js";

/** Finds the run of a command. Throws EarlyExit if there is none. */
export type FindRun = (store: Store) => Promise<Run>;

/** The run of that number; without a number, the run in progress, else the newest unfinished one. */
export async function runMeant(
  store: Store,
  which: number | undefined,
  lockOwner: LockOwner | null,
): Promise<Run> {
  const number = which ?? lockOwner?.run ?? undefined;
  const unfinished = number === undefined ? await store.run("unfinished") : null;
  return unfinished ?? newestRun(number)(store);
}

/** The unfinished runs, newest first; none if one is in progress, because that one is meant. */
export async function runsToChoose(store: Store, lockOwner: LockOwner | null): Promise<Run[]> {
  if (lockOwner?.run != null) return [];
  const runs = await store.runs();
  return runs.filter((run) => run.state !== "cancelled" && isUnfinished(run)).toReversed();
}

/**
 * The newest unfinished run, or the one of that number. A finished one continues if answers of its held items are here, or if
 * commands after its files have failed.
 */
export function unfinishedRun(which: number | undefined, workspace: Workspace): FindRun {
  return async (store) => {
    if (which !== undefined) return runNumbered(store, which);
    const run = await store.run("unfinished");
    if (run) return run;
    const newest = await store.run("newest");
    if (!newest) throw new EarlyExit("usage", `nothing to resume: no run is on record yet. ${howToBegin}`);
    const items = await store.items(newest.id, ["held"]);
    for (const item of items) if ((await taskInReceipts(store, item, workspace)) !== null) return newest;
    if (hasCommandsLeft(newest)) return newest;
    const held = await waitingIn(store, items, "held");
    if (held.length > 0) throw stillHeld(newest, held);
    throw nothingToResume();
  };
}

export function nothingToResume(): EarlyExit {
  return new EarlyExit("done", "nothing to resume: every run of this workspace is finished");
}

/** Only decisions of a person are left. */
function stillHeld(run: Run, held: readonly WaitingItem[]): EarlyExit {
  const { id, options } = run;
  const lines = reasonLines(held, statusCommand(run)).map((line) => `  ${line}`);
  const known = tasksKnown(held);
  const charged =
    known === "all" ? `${held.length === 1 ? "was" : "were"} paid for` : "may have been charged";
  return new EarlyExit(
    "held",
    [
      `nothing to resume: run ${id} is finished except for ${count(held.length, "held item")}, which ${charged}:`,
      ...lines,
      `Decide about them: ${heldAdvice(known, options.sandbox, held.length)}.`,
    ].join("\n"),
  );
}

/** The newest run, or the one of that number. */
export function newestRun(which: number | undefined): FindRun {
  return async (store) => {
    const run = which === undefined ? await store.run("newest") : await runNumbered(store, which);
    if (run) return run;
    throw new EarlyExit("usage", `no run is on record yet. ${howToBegin}`);
  };
}

async function runNumbered(store: Store, which: number): Promise<Run> {
  const run = await store.run(which);
  if (run) return run;
  // Rehearsals have a store of their own.
  const sandbox = sandboxFlag((await store.run("newest"))?.options);
  throw new EarlyExit(
    "usage",
    `no run ${which} in this workspace; \`bulkgen status --all${sandbox}\` lists them`,
  );
}

/** Whether resume has something to do; in a cancelled run, items that were paid for. */
export function isUnfinished({ state, owes }: Pick<Run, "state" | "owes">): boolean {
  return state === "cancelled" ? owes : state !== "finished";
}

/** Whether commands after its files or after the set have not done their work yet. */
export function hasCommandsLeft({ ending }: Pick<Run, "ending">): boolean {
  return ending?.after !== undefined;
}

/** The command that shows a run. */
export function statusCommand({ id, options }: { id: number; options: { sandbox: boolean } }): string {
  return `bulkgen status ${id}${sandboxFlag(options)}`;
}

/** The command that continues a run; `newest` if it need not be named. */
export function resumeCommand(
  { id, options }: { id: number; options: { sandbox: boolean } },
  newest: boolean,
): string {
  return `bulkgen resume${newest ? "" : ` ${id}`}${sandboxFlag(options)}`;
}
