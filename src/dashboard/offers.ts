import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import { failureKinds } from "../core/failure.js";
import { plus, toNumber } from "../core/money.js";
import type { Act, OfferedPrice } from "../documents/page.js";
import { decideItems } from "../job/orders/decide.js";
import { redoItems, retryFailed } from "../job/orders/redo.js";
import { agreedTo, type FindItems, type Offer, plannedRest } from "../job/orders/request.js";
import { resolveHeld } from "../job/orders/resolve.js";
import { allRows } from "../plan/plan.js";
import type { Store } from "../store/workspace/workspace.js";
import { lockOwnerOf } from "../workspace/lock.js";
import { withStore } from "../workspace/state.js";
import type { Workspace } from "../workspace/workspace.js";
import { Refused } from "./refused.js";

/**
 * What an act would cost, as its command would say before it asks. The command checks the price again, and refuses one
 * that has risen.
 */
export async function priceOf(act: Act, workspace: Workspace, clock: Clock): Promise<OfferedPrice> {
  return withStore(workspace, clock, async (store) => {
    try {
      if (act.do === "resume") return await restOf(store, act.run);
      const wanted = await orderOf(act, workspace.root)(store);
      // A process that works on the run submits the rest of it anyhow.
      const rest = (await lockOwnerOf(workspace))
        ? undefined
        : await plannedRest(store, wanted.run, wanted.order);
      let offer: Offer = { items: [], credits: noOffer, rest: { items: 0, credits: noOffer }, note: null };
      await agreedTo(
        wanted,
        async (asked) => {
          offer = asked;
          return true;
        },
        rest,
      );
      return offeredPriceOf(offer);
    } catch (error) {
      if (error instanceof EarlyExit) throw new Refused(error.message);
      throw error;
    }
  });
}

const noOffer = 0 as Offer["credits"];

async function restOf(store: Store, id: number): Promise<OfferedPrice> {
  const run = await store.run(id);
  if (!run) throw new Refused(`there is no run ${id} in this workspace`, "missing");
  return offeredPriceOf({ items: [], credits: noOffer, rest: await plannedRest(store, run), note: null });
}

function orderOf(act: Act, cwd: string): FindItems {
  const which = (names: readonly string[]) => ({ names, all: false, selection: allRows, cwd });
  switch (act.do) {
    case "retry":
      return retryFailed(act.run, failureKinds, allRows);
    case "redo":
      return redoItems({ names: act.items, selection: allRows, cwd, change: null, maxPrice: null });
    case "reject again":
      return decideItems(which(act.items), "again");
    case "adopt":
      return resolveHeld(which(act.items), { adopt: act.task });
    case "resubmit":
    case "refetch":
    case "accept":
      return resolveHeld(which(act.items), act.do);
    default:
      throw new Refused(`${act.do} has no price`);
  }
}

function offeredPriceOf({ items, credits, rest, note }: Offer): OfferedPrice {
  return {
    items: items.map(({ rowId, model, price }) => ({ rowId, model, price: toNumber(price) })),
    credits: toNumber(credits),
    rest: { items: rest.items, credits: toNumber(rest.credits) },
    note,
    // Added before it becomes a decimal number: the command takes six decimals.
    total: toNumber(plus(credits, rest.credits)),
  };
}
