import { EarlyExit } from "../../core/exit.js";
import type { FailureKind } from "../../core/failure.js";
import { plus } from "../../core/money.js";
import type { Item, Run } from "../../core/ports/store.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything, select, selectableItem, selectionText, unknownKeys } from "../../plan/select.js";
import { newestRun } from "../workspace/find-run.js";
import type { FindItems } from "./request.js";

/** The failed items of a run, those of these kinds that are selected, are to be submitted again. Each cost nothing when it failed. */
export function retryFailed(
  which: number | undefined,
  kinds: readonly FailureKind[],
  selection: Selection,
): FindItems {
  return async (store) => {
    const run = await newestRun(which)(store);
    const failed = await store.items(run.id, ["failed"]);
    const ofKind = failed.filter((item) => kinds.includes(item.failureKind ?? "unknown"));
    if (ofKind.length === 0) {
      const other =
        failed.length === 0 ? "no item of it has failed" : `${failed.length} items failed for other reasons`;
      throw new EarlyExit("done", `nothing to retry in run ${run.id}: ${other}`);
    }
    const items = selectItems(run, ofKind, selection);
    const agreed = plus(...items.map(({ price }) => price));
    return { run, offered: items, order: { do: "retry", items: items.map(({ id }) => id), agreed } };
  };
}

/** Those of a run's items that are selected, by the cells of their rows too. Throws EarlyExit where there is none. */
export function selectItems(run: Run, items: readonly Item[], selection: Selection): Item[] {
  if (isEverything(selection)) return [...items];
  const rows = items.map(selectableItem);
  for (const { key, near } of unknownKeys(rows, selection)) {
    const meant = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
    throw new EarlyExit("usage", `--filter names "${key}", which no row of run ${run.id} has${meant}`);
  }
  const chosen = select(rows, selection);
  if (chosen.length > 0) return chosen.map(({ item }) => item);
  throw new EarlyExit("usage", `no item of run ${run.id} is selected by ${selectionText(selection)}`);
}
