import { jobFolder } from "../../archive/disk/names.js";
import type { Clock } from "../../clock.js";
import type { ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Forecast } from "../../core/pace/forecast.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { openSteps } from "../../store/workspace/steps.js";
import { openWorkspace, withWorkspace } from "../../store/workspace/workspace.js";
import type { Evidence, WaitingItem } from "./evidence.js";
import { evidenceOf, reasonOf, spentIn } from "./evidence.js";
import { resumeCommand } from "./find-run.js";
import { refuseOutdated } from "./history.js";
import { type LockOwner, lockOwnerOf } from "./lock-owner.js";
import type { Workspace } from "./workspace.js";

const troubled: readonly ItemState[] = ["failed", "held", "unknown", "overdue"];
const open = ["running", "paused", "interrupted"];

/** Whether resume has something to do; in a cancelled run, items that were paid for. */
function isUnfinished({ state, owes }: Run): boolean {
  return open.includes(state) || (state === "cancelled" && owes);
}

/** The status of a run, read from the workspace alone. Null if there is no such run. Throws EarlyExit if the history is lost. */
export async function statusOf(
  workspace: Workspace,
  which: number | "newest",
  clock: Clock,
): Promise<RunStatus | null> {
  return withWorkspace(workspace, clock, async (store) => {
    const run = await store.run(which);
    if (!run) {
      await refuseOutdated(workspace, store);
      return null;
    }
    const items = await store.items(run.id, troubled);
    return {
      ...lineOf(run, await store.runs(), lockOwnerOf(workspace.lockFile)),
      counts: await store.counts(run.id),
      ...(await spentIn(store, run.id)),
      requests: run.requests,
      folder: jobFolder(run),
      forecast: run.options.forecast ?? null,
      trouble: await troubleOf(store, items),
    };
  });
}

/** The items in trouble. A failed item cost nothing and has an answer, so it needs no evidence. */
async function troubleOf(store: Store, items: readonly Item[]): Promise<ItemTrouble[]> {
  const trouble: ItemTrouble[] = [];
  for (const item of items) {
    const { rowNumber, rowId, state, nextAt } = item;
    const evidence = state === "failed" ? null : await evidenceOf(store, item.id);
    const due = state === "overdue" ? nextAt : null;
    trouble.push({ rowNumber, rowId, state, reason: reasonOf(item), evidence, nextAt: due });
  }
  return trouble;
}

/** Every run of the workspace, oldest first, with the results of its items. */
export async function historyOf(workspace: Workspace, clock: Clock): Promise<RunLine[]> {
  const store = openWorkspace(workspace, clock);
  const steps = openSteps(workspace.stateFile);
  try {
    const outcomes = steps.outcomes();
    const runs: RunLine[] = [];
    const all = await store.runs();
    if (all.length === 0) await refuseOutdated(workspace, store);
    const lockOwner = lockOwnerOf(workspace.lockFile);
    for (const run of all) {
      const { lost: _lost, ...spent } = await spentIn(store, run.id);
      const { archived = 0, failed = 0, held = 0 } = outcomes.get(run.id) ?? {};
      runs.push({
        ...lineOf(run, all, lockOwner),
        archived,
        failed,
        held,
        ...spent,
        requests: run.requests,
      });
    }
    return runs;
  } finally {
    steps.close();
    store.close();
  }
}

/** Status that depends on the other runs. A process executes one run; older runs keep their state. */
function lineOf(run: Run, runs: readonly Run[], current: LockOwner | null) {
  const { id, jobName, state, startedAt, endedAt, exit } = run;
  const alive = current?.run === id;
  const lockOwner = alive || runs.at(-1)?.id === id ? current : null;
  const newest = runs.findLast(isUnfinished)?.id === id;
  return {
    run: id,
    job: jobName,
    state,
    startedAt,
    endedAt,
    exit,
    alive,
    lockOwner,
    resume: isUnfinished(run) && !alive ? resumeCommand(run, newest) : null,
  };
}
/** The status of every run. Times are UTC ms. */
export interface RunOverview {
  run: number;
  job: string;
  state: string;
  /** A process is working on it now. */
  alive: boolean;
  /** The process that has the workspace's lock; shown with the run that it executes, and with the newest. */
  lockOwner: { pid: number; host: string; since: number } | null;
  startedAt: number;
  endedAt: number | null;
  exit: string | null;
  /** The command that continues it; null if it is finished or in progress. */
  resume: string | null;
  /** Charged for good. */
  spent: Credits;
  /** Charged, or possibly charged. */
  pending: Credits;
  /** The maximum cost of lost requests whose items were submitted again or skipped. */
  lostCredits: Credits;
  requests: number;
}

/** An item that did not go as it should. */
export interface ItemTrouble {
  rowNumber: number;
  rowId: string;
  state: string;
  reason: string;
  /** The evidence of its request, if its task may have to be found. */
  evidence: Evidence | null;
  /** When its task is polled again (UTC ms); null if no poll is due. */
  nextAt: number | null;
}

/** A run as `bulkgen status` shows it. */
export interface RunStatus extends RunOverview {
  counts: Readonly<Record<ItemState, number>>;
  folder: string;
  /** The forecast from the start of the run; null if there was none. */
  forecast: Forecast | null;
  trouble: readonly ItemTrouble[];
  /** The lost requests. */
  lost: readonly WaitingItem[];
}

/** A run as `bulkgen status --all` shows it, counting the items that changed in it by their last state. */
export interface RunLine extends RunOverview {
  archived: number;
  failed: number;
  held: number;
}
