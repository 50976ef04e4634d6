import { EarlyExit } from "../../core/exit.js";
import type { FailureKind } from "../../core/failure.js";
import { plus } from "../../core/money.js";
import type { Selection } from "../../plan/select.js";
import { newestRun } from "../run/continue-job.js";
import type { Wish } from "./request.js";
import { selectItems } from "./select-items.js";

/** The failed items of a run, those of these kinds that are selected, are to be submitted again. Each cost nothing when it failed. */
export function retryFailed(
  which: number | undefined,
  kinds: readonly FailureKind[],
  selection: Selection,
): Wish {
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
