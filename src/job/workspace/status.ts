import { jobFolder } from "../../archive/disk/names.js";
import type { Clock } from "../../clock.js";
import type { ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Forecast } from "../../core/pace/forecast.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { openSteps } from "../../store/workspace/steps.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { evidenceOf, reasonOf, spentIn } from "./evidence.js";
import type { Evidence, WaitingItem } from "./evidence-text.js";
import { resumeCommand } from "./find-run.js";
import { refuseOutdated } from "./history.js";
import { type Holder, holderOf } from "./holder.js";
import type { Workspace } from "./workspace.js";

const troubled: readonly ItemState[] = ["failed", "held", "unknown", "overdue"];
const open = ["running", "paused", "interrupted"];

/** There is something to go on with; in a cancelled run, what was paid for. */
function isUnfinished({ state, owes }: Run): boolean {
  return open.includes(state) || (state === "cancelled" && owes);
}

/** Where a run stands, read from the workspace alone. Null when there is no such run. Throws EarlyExit where its record is lost. */
export async function statusOf(
  workspace: Workspace,
  which: number | "newest",
  clock: Clock,
): Promise<RunStatus | null> {
  const store = openWorkspace(workspace, clock);
  try {
    const run = await store.run(which);
    if (!run) {
      await refuseOutdated(workspace, store);
      return null;
    }
    const items = await store.items(run.id, troubled);
    return {
      ...lineOf(run, await store.runs(), holderOf(workspace.lockFile)),
      counts: await store.counts(run.id),
      ...(await spentIn(store, run.id)),
      requests: run.requests,
      folder: jobFolder(run),
      forecast: run.options.forecast ?? null,
      trouble: await troubleOf(store, items),
    };
  } finally {
    store.close();
  }
}

/** The items in trouble. What failed cost nothing and has an answer, so nothing has to be found at the service. */
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

/** Every run of the workspace, oldest first, with what became of items in it. */
export async function historyOf(workspace: Workspace, clock: Clock): Promise<RunLine[]> {
  const store = openWorkspace(workspace, clock);
  const steps = openSteps(workspace.stateFile);
  try {
    const outcomes = steps.outcomes();
    const runs: RunLine[] = [];
    const all = await store.runs();
    if (all.length === 0) await refuseOutdated(workspace, store);
    const holder = holderOf(workspace.lockFile);
    for (const run of all) {
      const { lost: _lost, ...spent } = await spentIn(store, run.id);
      const { archived = 0, failed = 0, held = 0 } = outcomes.get(run.id) ?? {};
      runs.push({
        ...lineOf(run, all, holder),
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

/** What a run's place among the others tells. A process carries on one run; what older ones left keeps its state. */
function lineOf(run: Run, runs: readonly Run[], held: Holder | null) {
  const { id, jobName, state, startedAt, endedAt, exit } = run;
  const alive = held?.run === id;
  const holder = alive || runs.at(-1)?.id === id ? held : null;
  const newest = runs.findLast(isUnfinished)?.id === id;
  return {
    run: id,
    job: jobName,
    state,
    startedAt,
    endedAt,
    exit,
    alive,
    holder,
    resume: isUnfinished(run) && !alive ? resumeCommand(run, newest) : null,
  };
}
/** What is told of every run. Times are UTC ms. */
export interface RunOverview {
  run: number;
  job: string;
  state: string;
  /** A process is working on it now. */
  alive: boolean;
  /** The process that holds the workspace now; told of the run that it works on, and of the newest. */
  holder: { pid: number; host: string; since: number } | null;
  startedAt: number;
  endedAt: number | null;
  exit: string | null;
  /** The command that goes on with it; null when it is finished or under way. */
  resume: string | null;
  /** Charged for good. */
  spent: Credits;
  /** Charged, or perhaps to be charged. */
  pending: Credits;
  /** What lost requests cost at most, whose items were submitted again or given up. */
  lostCredits: Credits;
  requests: number;
}

/** An item that did not go as it should. */
export interface ItemTrouble {
  rowNumber: number;
  rowId: string;
  state: string;
  reason: string;
  /** What is on record of its request, where its task may have to be found. */
  evidence: Evidence | null;
  /** When its task is looked at again (UTC ms); null where that is not due by itself. */
  nextAt: number | null;
}

/** A run as `bulkgen status` shows it. */
export interface RunStatus extends RunOverview {
  counts: Readonly<Record<ItemState, number>>;
  folder: string;
  /** What was expected of the run when it began; null for what was not forecast. */
  forecast: Forecast | null;
  trouble: readonly ItemTrouble[];
  /** Those requests. */
  lost: readonly WaitingItem[];
}

/** A run as `bulkgen status --all` shows it: items that it left so, of those that took a step in it. */
export interface RunLine extends RunOverview {
  archived: number;
  failed: number;
  held: number;
}
