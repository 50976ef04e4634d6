import type { Carried } from "../job/give-order.js";
import type { Wish } from "../job/wish.js";
import { systemClock } from "../system.js";
import { endWith } from "./ending.js";
import { endOf, type ItemOrderFlags } from "./item-order.js";
import { onSlow } from "./order.js";
import { interruption } from "./signals.js";

/** Gives a held item up: by the process that holds the workspace, else here. Asks nobody, and needs no key. */
export async function giveUp(wish: Wish, flags: ItemOrderFlags): Promise<void> {
  const [{ carriedOutHere, giveOrder }, { lockWorkspace }, { settledWorkspace }] = await Promise.all([
    import("../job/give-order.js"),
    import("../job/open.js"),
    import("./job-options.js"),
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
