import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import type { FailureKind } from "../core/failure.js";
import { type ItemState, itemStates } from "../core/item.js";
import { type Credits, noCredits, plus } from "../core/money.js";
import type { Forecast } from "../core/pace/forecast.js";
import { timeLeftMs } from "../core/pace/time-left.js";
import type { Item, Run } from "../core/ports/store.js";
import type { Reason } from "../core/reason.js";
import { foldedName } from "../manifest/shape/columns.js";
import type { Store } from "../store/workspace/workspace.js";
import { nearest } from "../text/nearest.js";
import type { ItemReason } from "../text/reasons.js";
import { type BlockedReason, blockedIn } from "./blocked.js";
import { type Evidence, evidenceOf, reasonOf, taskInReceipts } from "./evidence.js";
import { hasCommandsLeft, isUnfinished, resumeCommand } from "./find-run.js";
import { refuseOutdated } from "./history.js";
import { type LeftToDo, leftToDo } from "./left-to-do.js";
import { type LockOwner, lockOwnerOf } from "./lock.js";
import { outputsPlace } from "./outputs-place.js";
import { type SpentIn, spentIn } from "./spent.js";
import { openSteps, openStore, withStore } from "./state.js";
import type { Workspace } from "./workspace.js";

const noItems = Object.fromEntries(itemStates.map((state) => [state, 0])) as RunStatus["counts"];
const troubled: readonly ItemState[] = ["failed", "held", "unknown", "overdue"];

/** The status of a run, read from the workspace alone. Null if there is no such run. Throws EarlyExit if the history is lost. */
export async function statusOf(
  workspace: Workspace,
  which: number | "newest",
  clock: Clock,
): Promise<RunStatus | null> {
  return withStore(workspace, clock, async (store) => {
    const run = await store.run(which);
    if (!run) {
      await refuseOutdated(workspace, store);
      return null;
    }
    const items = await store.items(run.id, troubled);
    const runs = await store.runs();
    const overview = await overviewOf(store, run, {
      runs,
      current: await lockOwnerOf(workspace),
      now: clock.now(),
      workspace,
    });
    const isLatest = !runs.some(({ id, jobId }) => id > run.id && jobId === run.jobId);
    // In a run in progress it is normal that items wait for others.
    const blocked = overview.alive ? [] : await blockedIn(store, run.id);
    const counts = await store.counts(run.id);
    return {
      ...overview,
      counts,
      endsAt: endOf(overview, counts),
      results: isLatest ? null : { ...noItems, ...(await outcomesOf(workspace, clock)).get(run.id) },
      folder: outputsPlace(run),
      forecast: run.options.forecast ?? null,
      trouble: [...(await troubleOf(store, items, workspace)), ...blocked.map(blockedTrouble)],
    };
  });
}

/** About when a run in progress ends, by its forecast and by how far it is. */
function endOf({ run, alive, now, lockOwner }: RunOverview, counts: RunStatus["counts"]): number | null {
  if (!alive) return null;
  const forecastMs = lockOwner?.forecastMs ?? run.options.forecast?.ms ?? null;
  const since = Math.max(run.startedAt, lockOwner?.since ?? 0);
  const leftMs = timeLeftMs(counts, forecastMs, now - since);
  return leftMs === null ? null : now + leftMs;
}

/** An item that failed, and why. */
export interface ItemFailure extends ItemReason {
  kind: FailureKind;
}

/** Why items failed. */
export function failuresOf(items: readonly Item[]): ItemFailure[] {
  return items
    .filter(({ state }) => state === "failed")
    .map((item) => ({ rowId: item.rowId, kind: item.failureKind ?? "unknown", reason: reasonOf(item) }));
}

/** The items in trouble. A failed item cost nothing and has an answer, so it needs no evidence. */
async function troubleOf(store: Store, items: readonly Item[], workspace: Workspace): Promise<ItemTrouble[]> {
  const trouble: ItemTrouble[] = [];
  for (const item of items) {
    const { rowNumber, rowId, state, nextAt } = item;
    const evidence = state === "failed" ? null : await evidenceOf(store, item.id);
    const due = state === "overdue" ? nextAt : null;
    const taskId = await taskInReceipts(store, item, workspace);
    const reason = taskId === null ? reasonOf(item) : answerIsHere;
    const known = evidence === null || taskId === null ? evidence : { ...evidence, taskId };
    trouble.push({ rowNumber, rowId, state, reason, evidence: known, nextAt: due });
  }
  return trouble;
}

const answerIsHere =
  "its answer is in the receipts of this folder, not in the database: `bulkgen resume` takes it from there";

function blockedTrouble({ rowNumber, rowId, reason }: BlockedReason): ItemTrouble {
  return { rowNumber, rowId, state: "blocked", reason, evidence: null, nextAt: null };
}

/**
 * The runs of the workspace, oldest first, with the results of their items: every one, or those that have not ended
 * before `since` (UTC ms).
 */
export async function historyOf(workspace: Workspace, clock: Clock, since = 0): Promise<RunLine[]> {
  const store = await openStore(workspace, clock);
  try {
    const outcomes = await outcomesOf(workspace, clock);
    const runs: RunLine[] = [];
    const all = await store.runs();
    if (all.length === 0) await refuseOutdated(workspace, store);
    const lockOwner = await lockOwnerOf(workspace);
    for (const run of all.filter(({ endedAt }) => endedAt === null || endedAt >= since)) {
      const { archived = 0, failed = 0, held = 0, unknown = 0 } = outcomes.get(run.id) ?? {};
      const overview = await overviewOf(store, run, {
        runs: all,
        current: lockOwner,
        now: clock.now(),
        workspace,
      });
      const failures = failed === 0 ? [] : failuresOf(await store.items(run.id, ["failed"]));
      runs.push({ ...overview, archived, failed, held, unknown, failures });
    }
    return runs;
  } finally {
    await store.close();
  }
}

/**
 * What the tasks of these runs have cost, by the values of a column of their sheets; `model` and a matrix's keys are columns,
 * too. Throws EarlyExit for a column that none of them has.
 */
export async function spentBy(
  workspace: Workspace,
  clock: Clock,
  runs: readonly number[],
  column: string,
): Promise<SpentBy[]> {
  const wanted = foldedName(column);
  const groups = new Map<string, SpentBy>();
  const known = new Set(["model"]);
  const store = await openStore(workspace, clock);
  try {
    for (const run of runs) {
      for (const name of (await store.sheetOf(run))?.columns ?? []) known.add(name);
      for await (const page of store.charges(run))
        for (const { model, cells, charged } of page) {
          for (const [name] of cells) known.add(name);
          const own = cells.find(([name]) => foldedName(name) === wanted)?.[1];
          const value = own ?? (wanted === "model" ? model : "");
          const group = groups.get(value) ?? { value, tasks: 0, credits: noCredits };
          groups.set(value, { value, tasks: group.tasks + 1, credits: plus(group.credits, charged) });
        }
    }
  } finally {
    await store.close();
  }
  if (runs.length > 0 && ![...known].some((name) => foldedName(name) === wanted)) {
    const near = nearest(column, known);
    const meant = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
    throw new EarlyExit(
      "usage",
      `--by names ${JSON.stringify(column)}, which no row of these runs has${meant}`,
    );
  }
  return [...groups.values()].toSorted((a, b) => b.credits - a.credits || (a.value < b.value ? -1 : 1));
}

export interface SpentBy {
  /** The empty text for rows without a value in the column. */
  value: string;
  tasks: number;
  credits: Credits;
}

async function outcomesOf(workspace: Workspace, clock: Clock) {
  const steps = await openSteps(workspace, clock);
  try {
    return await steps.outcomes();
  } finally {
    await steps.close();
  }
}

/** A process executes one run; older runs keep their state. */
async function overviewOf(
  store: Store,
  run: Run,
  {
    runs,
    current,
    now,
    workspace,
  }: { runs: readonly Run[]; current: LockOwner | null; now: number; workspace: Workspace },
): Promise<RunOverview> {
  const alive = current?.run === run.id;
  const newest = runs.findLast(isUnfinished)?.id === run.id;
  const canResume = (isUnfinished(run) || hasCommandsLeft(run)) && !alive;
  const isDone = run.exit === "done" && !canResume;
  const spent = await spentIn(store, run.id);
  const { submitting } = await store.counts(run.id);
  return {
    run,
    now,
    alive,
    reason: alive ? (current.reason ?? null) : null,
    lockOwner: alive || runs.at(-1)?.id === run.id ? current : null,
    resume: canResume ? resumeCommand(run, newest) : null,
    left: alive || isDone ? null : await leftToDo(store, run, workspace),
    ...spent,
    inFlight: alive ? Math.min(submitting, spent.inDoubt) : 0,
  };
}

/** The status of every run. Times are UTC ms. */
export interface RunOverview extends SpentIn {
  run: Run;
  /** When this was read (UTC ms). */
  now: number;
  /** A process is working on it now. */
  alive: boolean;
  /** Why the run in progress buys or sends nothing now; null if it does. */
  reason: Reason | null;
  /** The process that has the workspace's lock; shown with the run that it executes, and with the newest. */
  lockOwner: LockOwner | null;
  /** The command that continues it; null if it is finished or in progress. */
  resume: string | null;
  /** What may be left to do; null while it is in progress, and when all is done. */
  left: LeftToDo | null;
  /** The number of requests in doubt whose answers its process still waits for; none if it is not in progress. */
  inFlight: number;
}

/** An item that did not go as it should. */
export interface ItemTrouble {
  rowNumber: number;
  rowId: string;
  state: ItemState;
  reason: string;
  /** The evidence of its request, if its task may have to be found. */
  evidence: Evidence | null;
  /** When its task is polled again (UTC ms); null if no poll is due. */
  nextAt: number | null;
}

/** A run as `bulkgen status` shows it. */
export interface RunStatus extends RunOverview {
  counts: Readonly<Record<ItemState, number>>;
  /**
   * How it left its items, if a later run of its job has taken over some or all of them; null for the job's latest run.
   */
  results: Readonly<Record<ItemState, number>> | null;
  folder: string;
  /** The forecast from the start of the run; null if there was none. */
  forecast: Forecast | null;
  /** When the run in progress is expected to end (UTC ms); null if that is not known, or it is not in progress. */
  endsAt: number | null;
  trouble: readonly ItemTrouble[];
}

/** A run as `bulkgen status --all` shows it, counting the items that changed in it by their last state. */
export interface RunLine extends RunOverview {
  archived: number;
  failed: number;
  held: number;
  unknown: number;
  /** Those of the failed items that no later run took over. */
  failures: readonly ItemFailure[];
}
