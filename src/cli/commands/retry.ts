import type { Command } from "commander";
import type { FailureKind } from "../../core/failure.js";
import { type SelectionFlags, selectionOf, withSelection } from "../flags/selection.js";
import { failureKindList, positive } from "../flags/values.js";
import { type ItemOrderFlags, wantOfItems, withItemOrder } from "./orders/item-order.js";

export function defineRetry(program: Command): void {
  withItemOrder(withSelection(program.command("retry")))
    .description("submit the failed items of the newest or the named run again")
    .argument("[run]", "number of the run", positive)
    .option("--only <kinds>", "only failures of these kinds, such as provider,unknown", failureKindList)
    .action(retry);
}

interface RetryFlags extends ItemOrderFlags, SelectionFlags {
  only?: FailureKind[];
}

async function retry(which: number | undefined, flags: RetryFlags): Promise<void> {
  const [{ retryFailed }, { failureKinds }] = await Promise.all([
    import("../../job/orders/retry.js"),
    import("../../core/failure.js"),
  ]);
  const wish = retryFailed(which, flags.only ?? failureKinds, selectionOf(flags));
  await wantOfItems(wish, "submitted again", flags);
}
