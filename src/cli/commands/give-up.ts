import type { Carried } from "../../job/orders/give.js";
import type { Wish } from "../../job/orders/request.js";
import { systemClock } from "../../system.js";
import { endWith } from "../output/ending.js";
import { interruption } from "../output/signals.js";
import { endOf, type ItemOrderFlags } from "./orders/item-order.js";
import { onSlow } from "./orders/order.js";

/** Gives a held item up: by the process that holds the workspace, else here. Asks nobody, and needs no key. */
export async function giveUp(wish: Wish, flags: ItemOrderFlags): Promise<void> {
  const [{ carriedOutHere, giveOrder }, { lockWorkspace }, { settledWorkspace }] = await Promise.all([
    import("../../job/orders/give.js"),
    import("../../job/workspace/open.js"),
    import("../output/job-options.js"),
  ]);
  const options = {
    workspace: settledWorkspace(flags),
    clock: systemClock,
    signal: interruption(),
    onSlow: onSlow(flags),
    onLocked: onSlow(flags),
  };
  const { ifLocked } = flags;
  const carried: Carried | null =
    ifLocked === "order"
      ? await giveOrder(options, wish, () => carriedOutHere(options, wish))
      : await carriedOutHere(options, wish, await lockWorkspace({ ...options, ifLocked }));
  if (carried) endWith(endOf(carried, flags));
}
