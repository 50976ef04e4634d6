import { EarlyExit, type ExitName } from "../../core/exit.js";
import { type Carried, carriedOutHere, giveOrder } from "../../job/orders/give.js";
import type { FindItems } from "../../job/orders/request.js";
import { type Resolution, resolveHeld } from "../../job/orders/resolve.js";
import { lockWorkspace } from "../../job/workspace/open.js";
import type { Machine } from "../../machine.js";
import type { ItemOrderFlags, ResolveFlags } from "../flags/orders.js";
import { settledWorkspace } from "../settings/workspace.js";
import type { Call } from "./call.js";
import { endOf, orderItems } from "./orders/item-order.js";
import { onSlow } from "./orders/run-order.js";

export async function resolve({
  flags,
  args,
  machine,
}: Call<ResolveFlags, { item: string }>): Promise<ExitName | undefined> {
  const wish = resolveHeld(args.item, wayOf(flags), machine.cwd);
  return flags.skip ? skip(wish, flags, machine) : orderItems(wish, "submitted again", flags, machine);
}

function wayOf({ adopt, resubmit, refetch, skip }: ResolveFlags): Resolution {
  if (adopt?.trim() === "") throw new EarlyExit("usage", "--adopt: expected a task id, got nothing");
  if (adopt !== undefined) return { adopt };
  if (resubmit) return "resubmit";
  if (refetch) return "refetch";
  if (skip) return "skip";
  throw new EarlyExit("usage", "expected one of --adopt TASK, --resubmit, --refetch, --skip, got none");
}

/** Drops a held item, by the process with the workspace if there is one. Works offline and needs no key. */
async function skip(wish: FindItems, flags: ItemOrderFlags, machine: Machine): Promise<ExitName | undefined> {
  const slow = onSlow(flags, machine);
  const options = {
    workspace: settledWorkspace(flags, machine),
    clock: machine.clock,
    signal: machine.interrupt(),
    onSlow: slow,
    onLocked: slow,
  };
  const { ifLocked } = flags;
  const carried: Carried | null =
    ifLocked === "order"
      ? await giveOrder(options, wish, () => carriedOutHere(options, wish))
      : await carriedOutHere(options, wish, await lockWorkspace({ ...options, ifLocked }));
  return carried ? endOf(carried, flags, machine) : undefined;
}
