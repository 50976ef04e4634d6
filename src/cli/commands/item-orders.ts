import { defined } from "../../core/defined.js";
import { EarlyExit, type ExitName } from "../../core/exit.js";
import { failureKinds } from "../../core/failure.js";
import { credits, plus } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import { type DecidedItems, decideItems } from "../../job/orders/decide.js";
import { type Carried, carriedOutHere, continuationOf, giveOrder } from "../../job/orders/give.js";
import { redoItems, retryFailed } from "../../job/orders/redo.js";
import { agreedTo, type FindItems, type PriceConsent } from "../../job/orders/request.js";
import { type Resolution, resolveHeld } from "../../job/orders/resolve.js";
import type { ReviewDecision } from "../../job/orders/review.js";
import { continueJob } from "../../job/run/continue-job.js";
import type { JobOptions } from "../../job/run/run-job.js";
import type { Machine } from "../../machine.js";
import { selectionOf } from "../../options/manifest.js";
import type {
  ApproveFlags,
  ItemOrderFlags,
  RedoFlags,
  RejectFlags,
  ResolveFlags,
  RetryFlags,
} from "../../options/orders.js";
import { lockOwnerOf } from "../../workspace/lock.js";
import { lockWorkspace } from "../../workspace/open.js";
import { askPrice } from "../output/consent.js";
import { followed } from "../output/follow.js";
import { jobOptions, type PreparedRun } from "../output/job-options.js";
import { namesIn } from "../output/review-file.js";
import { workspaceToChange } from "../settings/workspace.js";
import type { Call } from "./call.js";
import { onSlow, showCarried } from "./pause.js";

/**
 * Carries out an order about items: continues their run, or has the process with the workspace do it. `what` says what
 * the user pays for.
 */
async function orderItems(
  findItems: FindItems,
  what: string,
  flags: ItemOrderFlags,
  machine: Machine,
): Promise<ExitName> {
  const { ifLocked } = flags;
  const carry = { ...flags, ifLocked: ifLocked === "order" ? ("fail" as const) : ifLocked };
  const prepared = await jobOptions(carry, machine, workspaceToChange(flags, machine));
  const consent = askedOnce((offer) => askPrice({ what, ...offer }, flags, prepared));
  const here = () =>
    followed(prepared, carry, (show) =>
      continueJob(prepared.options, continuationOf(findItems, consent), show),
    );
  return ifLocked === "order" ? hereOrThere(here, findItems, consent, flags, prepared) : here();
}

async function hereOrThere(
  here: () => Promise<ExitName>,
  findItems: FindItems,
  consent: PriceConsent,
  flags: ItemOrderFlags,
  { options, machine }: PreparedRun,
): Promise<ExitName> {
  const slow = onSlow(flags, machine);
  const carried = await giveOrder(
    { ...options, signal: options.interrupt, onSlow: slow },
    async (store) => {
      // The process that applies the order submits the rest of its run anyhow.
      const wanted = await findItems(store);
      return { run: wanted.run, order: await agreedTo(wanted, consent) };
    },
    // If it cannot start here because another process took the workspace, that process gets the order.
    async () => ((await lockOwnerOf(options.workspace)) ? null : here().catch(nullWhereLocked)),
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
  // With --events stdout is for events alone.
  showCarried(carried, flags, { ...machine, stdout: flags.events ? machine.stderr : machine.stdout });
  return carried.kind === "done" ? "done" : "usage";
}

/** Does not ask again about a price that was agreed to, when another process comes or goes in the meantime. */
function askedOnce(consent: PriceConsent): PriceConsent {
  let agreed = -1;
  return async (offer) => {
    const credits = plus(offer.credits, offer.rest.credits);
    if (credits <= agreed) return true;
    const yes = await consent(offer);
    if (yes) agreed = credits;
    return yes;
  };
}

export async function redo({
  flags,
  args,
  machine,
}: Call<RedoFlags, { items: string[] }>): Promise<ExitName> {
  const { from } = flags;
  if (from !== undefined && args.items.length > 0)
    throw new EarlyExit("usage", "expected items or --from FILE, got both");
  const names = from === undefined ? args.items : await namesIn(from, ["redo"], machine);
  const { param: params, prompt, maxPrice } = flags;
  const change = params === undefined && prompt === undefined ? null : defined({ params, prompt });
  const findItems = redoItems({
    names,
    selection: selectionOf(flags),
    cwd: machine.cwd,
    change,
    maxPrice: maxPrice === undefined ? null : credits(maxPrice),
  });
  return orderItems(findItems, "made again", flags, machine);
}

export async function retry({ flags, args, machine }: Call<RetryFlags, { run?: number }>): Promise<ExitName> {
  const findItems = retryFailed(args.run, flags.only ?? failureKinds, selectionOf(flags));
  return orderItems(findItems, "submitted again", flags, machine);
}

export async function resolve({
  flags,
  args,
  machine,
}: Call<ResolveFlags, { items: string[] }>): Promise<ExitName | undefined> {
  const which = {
    names: args.items,
    all: flags.all ?? false,
    selection: selectionOf(flags),
    cwd: machine.cwd,
  };
  const findItems = resolveHeld(which, wayOf(flags));
  return flags.skip
    ? changeOnly(findItems, flags, machine)
    : orderItems(findItems, "submitted again", flags, machine);
}

function wayOf({ adopt, resubmit, refetch, accept, skip }: ResolveFlags): Resolution {
  if (adopt?.trim() === "") throw new EarlyExit("usage", "--adopt: expected a task id, got nothing");
  if (adopt !== undefined) return { adopt };
  if (resubmit) return "resubmit";
  if (refetch) return "refetch";
  if (accept) return "accept";
  if (skip) return "skip";
  throw new EarlyExit(
    "usage",
    "expected one of --adopt TASK, --resubmit, --refetch, --accept, --skip, got none",
  );
}

export async function approve({
  flags,
  args,
  machine,
}: Call<ApproveFlags, { items: string[] }>): Promise<ExitName | undefined> {
  const which = await decidedItems(args.items, flags, machine, ["approve", "pick"]);
  return changeOnly(decideItems(which, "approve"), flags, machine);
}

export async function reject({
  flags,
  args,
  machine,
}: Call<RejectFlags, { items: string[] }>): Promise<ExitName | undefined> {
  const decision = flags.again ? "again" : "reject";
  const which = await decidedItems(args.items, flags, machine, [flags.again ? "redo" : "reject"]);
  const findItems = decideItems(which, decision);
  return flags.again
    ? orderItems(findItems, "made again", flags, machine)
    : changeOnly(findItems, flags, machine);
}

/** The items of a command that decides; those of a review file are the ones that it has for these decisions. */
async function decidedItems(
  items: readonly string[],
  flags: ApproveFlags,
  machine: Machine,
  decisions: readonly ReviewDecision[],
): Promise<DecidedItems> {
  const { from, all = false } = flags;
  if (from !== undefined && (items.length > 0 || all))
    throw new EarlyExit("usage", "expected items, --all or --from FILE, got more than one of them");
  const names = from === undefined ? items : await namesIn(from, decisions, machine);
  return { names, all, selection: selectionOf(flags), cwd: machine.cwd };
}

/** An order that submits nothing, by the process with the workspace if there is one. Works offline and needs no key. */
async function changeOnly(
  findItems: FindItems,
  flags: ItemOrderFlags,
  machine: Machine,
): Promise<ExitName | undefined> {
  const slow = onSlow(flags, machine);
  const options = {
    workspace: workspaceToChange(flags, machine),
    clock: machine.clock,
    signal: machine.interrupt(),
    onSlow: slow,
    onLocked: slow,
  };
  const { ifLocked } = flags;
  const carried: Carried | null =
    ifLocked === "order"
      ? await giveOrder(options, findItems, () => carriedOutHere(options, findItems))
      : await carriedOutHere(options, findItems, await lockWorkspace({ ...options, ifLocked }));
  return carried ? endOf(carried, flags, machine) : undefined;
}
