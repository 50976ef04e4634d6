import type { Attempt } from "../core/ports/attempt.js";
import type { Item, Store } from "../core/ports/store.js";
import type { Evidence, Waiting } from "../report/evidence.js";

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
): Promise<Waiting[]> {
  const waiting: Waiting[] = [];
  for (const item of items.filter((candidate) => candidate.state === state)) {
    const { rowId } = item;
    waiting.push({ rowId, reason: reasonOf(item), evidence: await evidenceOf(store, item.id) });
  }
  return waiting;
}
