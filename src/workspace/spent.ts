import { type Credits, minus, noCredits, plus } from "../core/money.js";
import type { Store } from "../store/workspace/workspace.js";
import { evidenceIn, type WaitingItem } from "./evidence.js";

/** What a run has cost or may have cost. */
export interface SpentIn {
  /** Charged for good. */
  spent: Credits;
  /** At the service, unknown or held: charged, or possibly charged. */
  pending: Credits;
  /** The part of `pending` for tasks that the service accepted, and the number of these tasks. */
  atService: Credits;
  tasks: number;
  /** How many requests may or may not have been charged. */
  inDoubt: number;
  /**
   * Requests that were or may have been charged, and whose items were submitted again or skipped, in this run or later.
   */
  lost: WaitingItem[];
  /** The maximum cost of those that this run sent. */
  lostCredits: Credits;
}

export async function spentIn(
  store: Pick<Store, "spending" | "orphans" | "item">,
  runId: number,
): Promise<SpentIn> {
  const { charged, pending, atService, tasks, inDoubt } = await store.spending(runId);
  const lost: WaitingItem[] = [];
  let lostCredits = noCredits;
  let ownLost = 0;
  for (const orphan of await store.orphans({ run: runId })) {
    const { rowId, state } = await store.item(orphan.itemId);
    const fate = state === "dropped" ? "its item was skipped or cancelled" : "its item was submitted again";
    const isOwn = orphan.runId === runId;
    const reason = isOwn ? fate : `${fate}; run ${orphan.runId} sent it and counts its credits`;
    lost.push({ rowId, reason, evidence: evidenceIn(orphan) });
    if (!isOwn) continue;
    lostCredits = plus(lostCredits, orphan.price);
    ownLost++;
  }
  return {
    spent: charged,
    pending: minus(pending, lostCredits),
    atService,
    tasks,
    inDoubt: inDoubt - ownLost,
    lost,
    lostCredits,
  };
}
