import { EarlyExit } from "../core/exit.js";
import type { FailureKind } from "../core/failure.js";
import { type Credits, plus } from "../core/money.js";
import type { Item } from "../core/store.js";
import type { Selection } from "../plan/select.js";
import type { Continuation } from "./continue-job.js";
import { selectItems } from "./select-items.js";

/** Asked before anything is paid: the items and what they cost together. */
export type PriceConsent = (
  items: readonly Pick<Item, "rowId" | "name" | "price">[],
  credits: Credits,
) => Promise<boolean>;

/** Puts the failed items of a run, those of these kinds that are selected, back to be submitted. Each cost nothing when it failed. */
export function retryFailed(
  kinds: readonly FailureKind[],
  selection: Selection,
  consent: PriceConsent,
): NonNullable<Continuation["change"]> {
  return async ({ store }, run) => {
    const failed = (await store.items(run.id)).filter((item) => item.state === "failed");
    const ofKind = failed.filter((item) => kinds.includes(item.failureKind ?? "unknown"));
    if (ofKind.length === 0) {
      const other =
        failed.length === 0 ? "no item of it has failed" : `${failed.length} items failed for other reasons`;
      throw new EarlyExit("done", `nothing to retry in run ${run.id}: ${other}`);
    }
    const chosen = selectItems(run, ofKind, selection);
    await agreed(consent, chosen);
    for (const item of chosen) await store.apply(item.id, "retry", { nextAt: 0 });
    return run;
  };
}

/** Throws EarlyExit unless the person agrees to the price. */
export async function agreed(
  consent: PriceConsent,
  items: readonly Pick<Item, "rowId" | "name" | "price">[],
): Promise<void> {
  const total = plus(...items.map((item) => item.price));
  if (!(await consent(items, total))) throw new EarlyExit("usage", "not confirmed; nothing was submitted");
}
