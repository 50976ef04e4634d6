import type { ExitName } from "../../core/exit.js";
import { failureKinds } from "../../core/failure.js";
import { retryFailed } from "../../job/orders/redo.js";
import type { RetryFlags } from "../flags/orders.js";
import { selectionOf } from "../flags/selection.js";
import type { Call } from "./call.js";
import { orderItems } from "./orders/item-order.js";

export async function retry({ flags, args, machine }: Call<RetryFlags, { run?: number }>): Promise<ExitName> {
  const wish = retryFailed(args.run, flags.only ?? failureKinds, selectionOf(flags));
  return orderItems(wish, "submitted again", flags, machine);
}
