import { EarlyExit, type ExitName } from "../../../core/exit.js";
import type { RunOptions } from "../../../core/next/options.js";
import { type Carried, continuationOf, giveOrder } from "../../../job/orders/give.js";
import { agreedTo, type FindItems, type PriceConsent } from "../../../job/orders/request.js";
import { continueJob } from "../../../job/run/continue-job.js";
import type { JobOptions } from "../../../job/run/run-job.js";
import { holderOf } from "../../../job/workspace/holder.js";
import type { Machine } from "../../../machine.js";
import type { ItemOrderFlags } from "../../flags/orders.js";
import { askPrice } from "../../output/consent.js";
import { followed } from "../../output/follow.js";
import { jobOptions, type PreparedRun } from "../../output/job-options.js";
import { settledWorkspace } from "../../settings/workspace.js";
import { onSlow, showCarried } from "./run-order.js";

/**
 * Carries out an order about items: continues their run, or has the process with the workspace do it. `what` says what
 * the user pays for.
 */
export async function orderItems(
  wish: FindItems,
  what: string,
  flags: ItemOrderFlags,
  machine: Machine,
): Promise<ExitName> {
  const { ifLocked } = flags;
  const carry = { ...flags, ifLocked: ifLocked === "order" ? ("fail" as const) : ifLocked };
  const prepared = await jobOptions(carry, machine, settledWorkspace(flags, machine));
  const consent = askedOnce((items, credits) => askPrice({ what, items, credits }, flags, prepared));
  const here = () =>
    followed(prepared, carry, (show) => continueJob(prepared.options, continuationOf(wish, consent), show));
  return ifLocked === "order" ? hereOrThere(here, wish, consent, flags, prepared) : here();
}

async function hereOrThere(
  here: () => Promise<ExitName>,
  wish: FindItems,
  consent: PriceConsent,
  flags: ItemOrderFlags,
  { options, machine }: PreparedRun,
): Promise<ExitName> {
  const slow = onSlow(flags, machine);
  const carried = await giveOrder(
    { ...options, signal: options.interrupt, onSlow: slow },
    async (store) => {
      const { run, order, offered } = await wish(store);
      return { run, order: await agreedTo(order, offered, consent) };
    },
    // If it cannot start here because another process took the workspace, that process gets the order.
    async () => (holderOf(options.workspace.lockFile) ? null : here().catch(nullWhereLocked)),
  );
  if (typeof carried === "string") return carried;
  if (carried.kind === "done" && isOtherDay(carried.run.options, options)) {
    slow("the running process keeps the daily cap that it was started with");
  }
  return endOf(carried, flags, machine);
}

/** Whether the daily cap of this call differs from that of the run. */
function isOtherDay(run: RunOptions, { dailyCredits }: JobOptions): boolean {
  return dailyCredits !== undefined && dailyCredits !== run.dailyCredits;
}

function nullWhereLocked(error: unknown): null {
  if (error instanceof EarlyExit && error.exit === "locked") return null;
  throw error;
}

/** A refusal is reported as if the command had done the work itself. */
export function endOf(carried: Carried, flags: ItemOrderFlags, machine: Machine): ExitName {
  if (carried.kind === "refused" && !flags.json) throw new EarlyExit("usage", carried.message);
  showCarried(carried, flags, machine);
  return carried.kind === "done" ? "done" : "usage";
}

/** Does not ask again about a price that was agreed to, when another process comes or goes in the meantime. */
function askedOnce(consent: PriceConsent): PriceConsent {
  let agreed = -1;
  return async (items, credits) => {
    if (credits <= agreed) return true;
    const yes = await consent(items, credits);
    if (yes) agreed = credits;
    return yes;
  };
}
