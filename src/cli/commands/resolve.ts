import { type Command, Option } from "commander";
import { EarlyExit } from "../../core/exit.js";
import type { Carried } from "../../job/orders/give.js";
import type { FindItems } from "../../job/orders/request.js";
import type { Resolution } from "../../job/orders/resolve.js";
import { systemClock } from "../../system.js";
import { endWith } from "../output/ending.js";
import { interruption } from "../output/signals.js";
import { endOf, type ItemOrderFlags, wantOfItems, withItemOrder } from "./orders/item-order.js";
import { onSlow } from "./orders/order.js";

export function defineResolve(program: Command): void {
  const ways = ["adopt", "resubmit", "refetch", "skip"];
  const others = (way: string) => ways.filter((other) => other !== way);
  withItemOrder(program.command("resolve"))
    .description("decide on a held item: its task is known, pay again, fetch again, or give it up")
    .argument("<item>", "row id, path of a file, or task id; RUN:ROW-ID for the one of a run")
    .addOption(
      new Option("--adopt <task>", "this task is the item's; checked against its own record").conflicts(
        others("adopt"),
      ),
    )
    .addOption(
      new Option("--resubmit", "submit it again; authorises one more charge").conflicts(others("resubmit")),
    )
    .addOption(new Option("--refetch", "ask for its outputs again").conflicts(others("refetch")))
    .addOption(
      new Option("--skip", "give it up; what it may have cost stays counted").conflicts(others("skip")),
    )
    .action(resolve);
}

interface ResolveFlags extends ItemOrderFlags {
  adopt?: string;
  resubmit?: boolean;
  refetch?: boolean;
  skip?: boolean;
}

async function resolve(item: string, flags: ResolveFlags): Promise<void> {
  const { resolveHeld } = await import("../../job/orders/resolve.js");
  const wish = resolveHeld(item, wayOf(flags));
  await (flags.skip ? giveUp(wish, flags) : wantOfItems(wish, "submitted again", flags));
}

function wayOf({ adopt, resubmit, refetch, skip }: ResolveFlags): Resolution {
  if (adopt?.trim() === "") throw new EarlyExit("usage", "--adopt: expected a task id, got none");
  if (adopt !== undefined) return { adopt };
  if (resubmit) return "resubmit";
  if (refetch) return "refetch";
  if (skip) return "skip";
  throw new EarlyExit("usage", "say how: expected one of --adopt TASK, --resubmit, --refetch, --skip");
}

/** Gives a held item up: by the process that holds the workspace, else here. Asks nobody, and needs no key. */
export async function giveUp(wish: FindItems, flags: ItemOrderFlags): Promise<void> {
  const [{ carriedOutHere, giveOrder }, { lockWorkspace }, { settledWorkspace }] = await Promise.all([
    import("../../job/orders/give.js"),
    import("../../job/workspace/open.js"),
    import("../output/session.js"),
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
