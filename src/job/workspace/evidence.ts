import { type Credits, minus, noCredits, plus } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { Item, Store } from "../../core/ports/store.js";
import type { Evidence, WaitingItem } from "./evidence-text.js";

/** What is on record of an item's newest request; null when there was none. */
export async function evidenceOf(store: Pick<Store, "attempt">, itemId: number): Promise<Evidence | null> {
  const attempt = await store.attempt(itemId);
  return attempt && evidenceIn(attempt);
}

/** What is on record of an attempt. */
export function evidenceIn({ sentAt, status, bodySha256, taskId, externalTaskId }: Attempt): Evidence {
  return { sentAt, status, bodySha256, taskId, externalTaskId };
}

/** Why an item is where it is, in words. */
export function reasonOf({ state, note }: Pick<Item, "state" | "note">): string {
  return note ?? (state === "overdue" ? "still processing" : "no reason is known");
}

/** The items in this state, each with why and with its evidence. */
export async function waitingIn(
  store: Pick<Store, "attempt">,
  items: readonly Item[],
  state: "held" | "unknown" | "overdue",
): Promise<WaitingItem[]> {
  const waiting: WaitingItem[] = [];
  for (const item of items.filter((candidate) => candidate.state === state)) {
    const { rowId } = item;
    waiting.push({ rowId, reason: reasonOf(item), evidence: await evidenceOf(store, item.id) });
  }
  return waiting;
}

/** What a run has cost, or may have. */
export interface SpentIn {
  /** Charged for good. */
  spent: Credits;
  /** At the service, unknown or held: charged, or perhaps to be charged. */
  pending: Credits;
  /** Requests that were charged or perhaps charged, and whose items were submitted again or given up, here or since. */
  lost: WaitingItem[];
  /** What those that this run sent cost at most. */
  lostCredits: Credits;
}

export async function spentIn(
  store: Pick<Store, "spending" | "orphans" | "item">,
  runId: number,
): Promise<SpentIn> {
  const { charged, pending } = await store.spending(runId);
  const lost: WaitingItem[] = [];
  let lostCredits = noCredits;
  for (const orphan of await store.orphans({ run: runId })) {
    const { rowId, state } = await store.item(orphan.itemId);
    const fate = state === "dropped" ? "given up" : "its item was submitted again";
    const isOwn = orphan.runId === runId;
    const reason = isOwn ? fate : `${fate}; run ${orphan.runId} sent it and counts its credits`;
    lost.push({ rowId, reason, evidence: evidenceIn(orphan) });
    if (isOwn) lostCredits = plus(lostCredits, orphan.price);
  }
  return { spent: charged, pending: minus(pending, lostCredits), lost, lostCredits };
}
