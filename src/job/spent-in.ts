import { type Credits, minus, noCredits, plus } from "../core/money.js";
import type { Store } from "../core/ports/store.js";
import type { Waiting } from "../report/evidence.js";
import { evidenceIn } from "./evidence.js";

/** What a run has cost, or may have. */
export interface SpentIn {
  /** Charged for good. */
  spent: Credits;
  /** At the service, unknown or held: charged, or perhaps to be charged. */
  pending: Credits;
  /** Requests that were charged or perhaps charged, and whose items were submitted again or given up, here or since. */
  lost: Waiting[];
  /** What those that this run sent cost at most. */
  lostCredits: Credits;
}

export async function spentIn(
  store: Pick<Store, "spending" | "orphans" | "item">,
  runId: number,
): Promise<SpentIn> {
  const { charged, pending } = await store.spending(runId);
  const lost: Waiting[] = [];
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
