import type { Me } from "../api/records.js";
import { type Credits, credits, minus, noCredits, plus } from "../core/money.js";
import type { NewItem } from "../core/store.js";
import type { Existing, Fit, ModelCost, Money, Order, PlannedItem } from "./plan.js";

/** Where each item stands, which are to be submitted, in which order, and how far the money reaches. */
export function stand(
  items: readonly NewItem[],
  existing: readonly Existing[],
  affordable: Credits,
  { order = "priority", again = new Set() }: { order?: Order; again?: ReadonlySet<string> } = {},
) {
  const known = new Map(existing.map((item) => [item.key, item]));
  const planned = prioritised(items, order).map((item): PlannedItem => {
    const old = known.get(item.key);
    const due = isDue(old) || again.has(item.key);
    return { ...item, standing: old?.state ?? "new", due, order: 0, fits: false };
  });
  const inOrder = planned.toSorted((a, b) => b.priority - a.priority || a.position - b.position);
  for (const [order, item] of inOrder.entries()) item.order = order;
  return { items: planned, fit: reachOf(inOrder, affordable) };
}

/** The priorities that lead to an order of submission. */
function prioritised(items: readonly NewItem[], order: Order): readonly NewItem[] {
  if (order === "priority") return items;
  if (order === "sheet") return items.map((item) => ({ ...item, priority: 0 }));
  const prices = [...new Set(items.map(({ price }) => price))].toSorted((a, b) => a - b);
  const ranks = new Map(prices.map((price, rank) => [price, -rank]));
  return items.map((item) => ({ ...item, priority: ranks.get(item.price) ?? 0 }));
}

/** A dropped item comes back with its row, unless it was submitted once: then a person skipped it. */
function isDue(old: Existing | undefined): boolean {
  if (!old || old.state === "planned" || old.state === "blocked") return true;
  return old.state === "dropped" && old.attempted !== true;
}

/** Marks the items that are paid for. It ends at the first one that is not: a cheaper one does not jump the queue. */
function reachOf(inOrder: readonly PlannedItem[], affordable: Credits): Fit {
  const reached: Fit = { items: 0, credits: noCredits, rowNumber: null, rowId: null };
  for (const item of inOrder) {
    if (!item.due) continue;
    const sum = plus(reached.credits, item.price);
    if (sum > affordable) break;
    item.fits = true;
    reached.items++;
    reached.credits = sum;
    reached.rowNumber = item.rowNumber;
    reached.rowId = item.rowId;
  }
  return reached;
}

/** What a run may spend: the balance, and no more than the cap leaves. */
export function affordable(me: Me, maxCredits: Credits | null, spent: Credits): Credits {
  const balance = credits(me.credits.balance);
  return maxCredits === null ? balance : (Math.min(balance, minus(maxCredits, spent)) as Credits);
}

export function moneyOf(
  items: readonly PlannedItem[],
  me: Me,
  maxCredits: Credits | null,
  spent: Credits,
): Money {
  const balance = credits(me.credits.balance);
  const needed = items.reduce((sum, { due, price }) => (due ? plus(sum, price) : sum), noCredits);
  return { needed, balance, after: minus(balance, needed), maxCredits, spent };
}

/** One line for each model, in the order in which the manifest first names them. */
export function modelCosts(items: readonly PlannedItem[]): ModelCost[] {
  const costs = new Map<string, ModelCost>();
  for (const { model, category, price, due } of items) {
    const cost = costs.get(model) ?? { model, category, items: 0, due: 0, price, credits: noCredits };
    costs.set(model, cost);
    // Params may change a price: the highest is shown, the sum is exact.
    cost.price = Math.max(cost.price, price) as Credits;
    cost.items++;
    if (!due) continue;
    cost.due++;
    cost.credits = plus(cost.credits, price);
  }
  return [...costs.values()];
}
