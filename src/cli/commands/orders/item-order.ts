import { type Command, Option } from "commander";
import { EarlyExit, type ExitName } from "../../../core/exit.js";
import type { RunOptions } from "../../../core/next/options.js";
import type { Carried } from "../../../job/orders/give.js";
import type { FindItems, PriceConsent } from "../../../job/orders/request.js";
import type { JobOptions } from "../../../job/run/run-job.js";
import { withCarry, withDailyCap, withService } from "../../flags/shared.js";
import { oneOf } from "../../flags/values.js";
import { endWith } from "../../output/ending.js";
import type { CarryFlags, Prepared } from "../../output/session.js";
import { onSlow, showCarried } from "./order.js";

/** Flags of the commands that want something of items: they carry a run on, or have the one at work do it. */
export interface ItemOrderFlags extends Omit<CarryFlags, "ifLocked"> {
  ifLocked: CarryFlags["ifLocked"] | "order";
  yes?: boolean;
}

export function withItemOrder(command: Command): Command {
  const carrying = withCarry(
    withService(command),
    new Option(
      "--if-locked <what>",
      "when another run holds the workspace: order it of that run, or fail, wait or skip",
    )
      .argParser(oneOf("order", "fail", "wait", "skip"))
      .default("order"),
  );
  return withDailyCap(carrying).option("--yes", "do not ask before spending (required without a terminal)");
}

/**
 * Does what a person wants of items: goes on with their run, or has the process that holds the workspace do it. `what`
 * names what they are about to pay for.
 */
export async function wantOfItems(wish: FindItems, what: string, flags: ItemOrderFlags): Promise<void> {
  const [{ continueJob }, { continuationOf }, { jobOptions, settledWorkspace }, { askPrice }, { followed }] =
    await Promise.all([
      import("../../../job/run/continue-job.js"),
      import("../../../job/orders/continuation.js"),
      import("../../output/session.js"),
      import("../../output/consent.js"),
      import("../../output/follow.js"),
    ]);
  const { ifLocked } = flags;
  const carry = { ...flags, ifLocked: ifLocked === "order" ? ("fail" as const) : ifLocked };
  const prepared = await jobOptions(carry, settledWorkspace(flags));
  const consent = onceAsked((items, credits) => askPrice({ what, items, credits }, flags, prepared));
  const here = () =>
    followed(prepared, carry, (show) => continueJob(prepared.options, continuationOf(wish, consent), show));
  endWith(ifLocked === "order" ? await hereOrThere(here, wish, consent, flags, prepared) : await here());
}

async function hereOrThere(
  here: () => Promise<ExitName>,
  wish: FindItems,
  consent: PriceConsent,
  flags: ItemOrderFlags,
  { options }: Prepared,
): Promise<ExitName> {
  const [{ giveOrder }, { agreedTo }, { holderOf }] = await Promise.all([
    import("../../../job/orders/give.js"),
    import("../../../job/orders/request.js"),
    import("../../../job/workspace/holder.js"),
  ]);
  const told = await giveOrder(
    { ...options, signal: options.interrupt, onSlow: onSlow(flags) },
    async (store) => {
      const { run, order, offered } = await wish(store);
      return { run, order: await agreedTo(order, offered, consent) };
    },
    // Its end is told to nobody where it cannot begin for being carried out elsewhere.
    async () => (holderOf(options.workspace.lockFile) ? null : here().catch(nullWhereLocked)),
  );
  if (typeof told === "string") return told;
  if (told.kind === "done" && isOtherDay(told.run.options, options)) {
    onSlow(flags)("the process at work keeps to the day's cap that it was begun with");
  }
  return endOf(told, flags);
}

/** Whether the day's cap as it is set now is another one than that of the run. */
function isOtherDay(run: RunOptions, { dailyCredits }: JobOptions): boolean {
  return dailyCredits !== undefined && dailyCredits !== run.dailyCredits;
}

function nullWhereLocked(error: unknown): null {
  if (error instanceof EarlyExit && error.exit === "locked") return null;
  throw error;
}

/** Refusals are told like those of a command that does it itself. */
export function endOf(carried: Carried, flags: ItemOrderFlags): ExitName {
  if (carried.kind === "refused" && !flags.json) throw new EarlyExit("usage", carried.message);
  showCarried(carried, flags);
  return carried.kind === "done" ? "done" : "usage";
}

/** A person who has agreed to a price is not asked again when another process comes or goes meanwhile. */
function onceAsked(consent: PriceConsent): PriceConsent {
  let agreed = -1;
  return async (items, credits) => {
    if (credits <= agreed) return true;
    const yes = await consent(items, credits);
    if (yes) agreed = credits;
    return yes;
  };
}
