import type { Credits } from "../../core/money.js";
import type { Run, Store } from "../../core/ports/store.js";
import type { Plan } from "../../plan/plan.js";
import { missingFiles } from "../workspace/missing-files.js";
import type { SheetOptions } from "./prepare.js";

/** Puts back what a person asked for once more and has agreed to the price of: failed items, and lost files. */
export async function again(
  store: Store,
  run: Run,
  plan: Plan,
  { selection, onMissing }: Pick<SheetOptions, "selection" | "onMissing">,
): Promise<void> {
  const lost = new Set(onMissing === "report" ? [] : plan.missing.map(({ key }) => key));
  if (lost.size === 0 && !selection.onlyFailed) return;
  const due = new Map<string, Credits>();
  for (const item of plan.items) if (item.due) due.set(item.key, item.price);
  const numbers = lost.size === 0 ? new Map<string, number[]>() : await missingFiles(store, run.jobName);
  for (const { id, key, state } of await store.items(run.id)) {
    const price = due.get(key);
    if (state === "failed" && selection.onlyFailed && price !== undefined)
      await store.apply(id, "retry", { nextAt: 0, price });
    if (state !== "archived" || !lost.has(key)) continue;
    if (onMissing === "pay") await payAgain(store, id, price);
    // What was made elsewhere has no task to be fetched from.
    else if (await store.attempt(id))
      for (const number of numbers.get(key) ?? []) await store.lost(id, number);
  }
}

/** All outputs belong to one task, so all of them are made anew; files that are still there stay where they are. */
async function payAgain(store: Store, itemId: number, price: Credits | undefined): Promise<void> {
  for (const { number } of await store.outputs(itemId)) await store.lost(itemId, number);
  await store.apply(itemId, "unfetchable", { note: "its file is gone" });
  await store.apply(itemId, "resubmit", { nextAt: 0, ...(price === undefined ? {} : { price }) });
}
