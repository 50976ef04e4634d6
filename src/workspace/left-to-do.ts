import { mediaFields } from "../api/inputs.js";
import type { FailureKind } from "../core/failure.js";
import type { ItemState } from "../core/item.js";
import { type Credits, noCredits, plus } from "../core/money.js";
import type { Item, Run } from "../core/ports/store.js";
import type { Store } from "../store/workspace/workspace.js";
import { type TasksKnown, taskInReceipts, tasksKnown, waitingIn } from "./evidence.js";
import { isUnfinished } from "./find-run.js";
import type { Workspace } from "./workspace.js";

/** What a run left undone, and when it can be continued. Times are UTC ms. */
export interface LeftToDo {
  run: Run;
  /** A resume without a number continues this run. */
  isNewest: boolean;
  counts: Readonly<Record<ItemState, number>>;
  failureKinds: readonly FailureKind[];
  /** What the service could not read of failed items, perhaps through no fault of their rows; null if there is nothing. */
  unreadInputs: "files" | "addresses" | null;
  /** The cap that covers what is spent or open, and the items that are left. */
  capNeeded: Credits;
  /** Row ids of the items whose tasks take longer than expected, and when the first is polled again. */
  overdue: readonly string[];
  nextPollAt: number | null;
  /** Row ids of the items that wait for a person's approval. */
  awaiting: readonly string[];
  /** Of how many of the held items the tasks are known. */
  heldTasks: TasksKnown;
  /** How many of them have their answers in the receipts of this folder. */
  heldAnswers: number;
  /** The latest time at which it is decided whether the unanswered requests were charged; null if there are none. */
  decidesAt: number | null;
}

/** `items` are the run's failed, held, overdue or unknown items, if they were read already. */
export async function leftToDo(
  store: Store,
  run: Run,
  workspace: Workspace,
  items?: readonly Item[],
): Promise<LeftToDo> {
  const open = items ?? (await store.items(run.id, ["failed", "held", "overdue", "unknown"]));
  const failed = open.filter(({ state }) => state === "failed");
  const overdue = open.filter(({ state }) => state === "overdue");
  const newest = await store.run("unfinished");
  return {
    run: await withoutMade(store, run),
    isNewest: newest === null || newest.id === run.id,
    counts: await store.counts(run.id),
    failureKinds: [...new Set(failed.map(({ failureKind }) => failureKind ?? "unknown"))],
    unreadInputs: unreadInputs(failed),
    capNeeded: isUnfinished(run) ? await capNeeded(store, run) : noCredits,
    overdue: overdue.map(({ rowId }) => rowId),
    nextPollAt: earliest(overdue.map(({ nextAt }) => nextAt)),
    awaiting: (await store.awaitingApproval(run.id)).map(({ rowId }) => rowId),
    heldTasks: tasksKnown(await waitingIn(store, open, "held")),
    heldAnswers: await heldAnswers(store, open, workspace),
    decidesAt: await decidesAt(store, run, open),
  };
}

async function heldAnswers(store: Store, items: readonly Item[], workspace: Workspace): Promise<number> {
  let found = 0;
  for (const item of items) if ((await taskInReceipts(store, item, workspace)) !== null) found++;
  return found;
}

/** What a run left out is in the hands of a later run of its job, if there is one. */
async function withoutMade(store: Store, run: Run): Promise<Run> {
  if (run.ending === null || run.ending.leftOut === 0) return run;
  const isFollowed = (await store.runs()).some(
    ({ id, jobId, edition }) => id > run.id && jobId === run.jobId && edition === run.edition,
  );
  return isFollowed ? { ...run, ending: { ...run.ending, leftOut: 0 } } : run;
}

/** Local files that were published, or addresses that the rows name. */
function unreadInputs(failed: readonly Item[]): LeftToDo["unreadInputs"] {
  const unread = failed.filter(
    ({ failureKind, inputs }) => failureKind === "input" && mediaFields.some((field) => field in inputs),
  );
  if (unread.length === 0) return null;
  return unread.some(({ files }) => files !== undefined) ? "files" : "addresses";
}

/** The cap of a run that covers what is spent or open, and the items that are left. */
export async function capNeeded(store: Store, { id }: Run): Promise<Credits> {
  const { charged, pending } = await store.spending(id);
  const groups = await store.waiting(id, { models: [], prices: [] });
  const blocked = await store.items(id, ["blocked"]);
  return plus(
    charged,
    pending,
    ...groups.map(({ credits }) => credits),
    ...blocked.map(({ price }) => price),
  );
}

/** The last of the two times at which an unanswered request must show no charge. */
async function decidesAt(
  store: Store,
  { options: { settleMs } }: Run,
  items: readonly Item[],
): Promise<number | null> {
  let latest: number | null = null;
  for (const { id, state } of items) {
    const attempt = state === "unknown" ? await store.attempt(id) : null;
    if (attempt === null) continue;
    latest = Math.max(latest ?? 0, (attempt.answeredAt ?? attempt.sentAt) + settleMs[1]);
  }
  return latest;
}

function earliest(times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.min(...times);
}
