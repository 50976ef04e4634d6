import type { Me } from "../api/records.js";
import type { Draft, GroupSum, Ordered } from "../core/draft.js";
import { type Credits, credits, minus, noCredits, plus } from "../core/money.js";
import type { Fit, ModelCost, Money } from "./plan.js";
import type { PriceGroup } from "./prices.js";

/** How far the money reaches: the last item that is paid for. It ends at the first one that is not: a cheaper one does not jump the queue. */
export function reachOf(
  draft: Draft,
  { due, needed }: { due: number; needed: Credits },
  affordable: Credits,
): { fit: Fit; last: Ordered | null } {
  let last: Ordered | null = null;
  const reached = { items: 0, credits: noCredits };
  if (needed <= affordable) {
    last = draft.lastDue();
    reached.items = due;
    reached.credits = needed;
  } else {
    for (const item of draft.dueInOrder()) {
      const sum = plus(reached.credits, item.price);
      if (sum > affordable) break;
      reached.items++;
      reached.credits = sum;
      last = item;
    }
  }
  return { last, fit: { ...reached, rowNumber: last?.rowNumber ?? null, rowId: last?.rowId ?? null } };
}

/** What a run may spend: the balance, and no more than the cap leaves. */
export function affordable(me: Me, maxCredits: Credits | null, spent: Credits): Credits {
  const balance = credits(me.credits.balance);
  return maxCredits === null ? balance : (Math.min(balance, minus(maxCredits, spent)) as Credits);
}

export function moneyOf(
  sums: readonly GroupSum[],
  me: Me,
  maxCredits: Credits | null,
  spent: Credits,
): Money {
  const balance = credits(me.credits.balance);
  const needed = plus(...sums.map((group) => group.credits));
  return { needed, balance, after: minus(balance, needed), maxCredits, spent };
}

/** One line for each model, in the order in which the manifest first names them. */
export function modelCosts(sums: readonly (GroupSum & PriceGroup)[]): ModelCost[] {
  const costs = new Map<string, ModelCost>();
  for (const { model, category, price, items, due, credits: paid } of sums) {
    const cost = costs.get(model) ?? { model, category, items: 0, due: 0, price, credits: noCredits };
    costs.set(model, cost);
    // Params may change a price: the highest is shown, the sum is exact.
    cost.price = Math.max(cost.price, price) as Credits;
    cost.items += items;
    cost.due += due;
    cost.credits = plus(cost.credits, paid);
  }
  return [...costs.values()];
}
