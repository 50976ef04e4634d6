import { EarlyExit } from "../../core/exit.js";
import { offeredPrice } from "../../core/identity.js";
import { type Credits, inCredits, plus, showCredits } from "../../core/money.js";
import type { ItemOrder } from "../../core/ports/orders.js";
import type { SpendLog } from "../../core/ports/spend-log.js";
import type { Item, NewItem, Run, Store } from "../../core/ports/store.js";
import { count } from "../../text/amounts.js";
import type { Facts } from "./facts.js";
import { addVariants, todaysPrices, variantsOf } from "./redo.js";
import type { Offered } from "./request.js";
import { adopt, mustBeHeld, refetch } from "./resolve.js";

export interface ItemWork {
  store: Store;
  /** Null where there is no account, which only giving an item up can do without. */
  books: SpendLog | null;
  facts: Facts;
  /** The highest charges seen, by price group. */
  charges: ReadonlyMap<string, Credits>;
}

/** Items with the prices that they are offered at now. Throws EarlyExit. */
export function pricesNow<Priced extends Offered>(
  items: readonly Priced[],
  { models }: Facts,
  charges: ReadonlyMap<string, Credits>,
): Priced[] {
  if (models) return todaysPrices(items, models, charges);
  return items.map((item) => ({ ...item, price: offeredPrice(item, item.price, charges) }));
}

/**
 * Does what is wanted of items, and says what was done in a few words; their run, or the one begun for them, has yet to
 * go on with it. Whatever has changed since the person looked is refused by EarlyExit, and changes nothing.
 */
export async function orderItems(
  work: ItemWork,
  run: Run,
  order: ItemOrder,
): Promise<{ run: Run; done: string }> {
  const { store } = work;
  const items = await Promise.all(order.items.map((id) => store.item(id)));
  if (order.do === "redo") return redo(work, run, items, order.agreed);
  const done =
    order.do === "retry" ? await retry(work, run, items, order.agreed) : await resolve(work, items, order);
  return { run: "agreed" in order ? await reopened(store, run, order.items) : run, done };
}

/** What is to be submitted opens its run again where that was cancelled; nothing else of it is submitted all the same. */
async function reopened(store: Store, run: Run, items: readonly number[]): Promise<Run> {
  if (run.state !== "cancelled") return run;
  await store.cancelRun(run.id, new Set(items));
  await store.setRun(run.id, { state: "interrupted" });
  return { ...run, state: "interrupted" };
}

async function redo(
  { store, facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  agreed: Credits,
): Promise<{ run: Run; done: string }> {
  if (!facts.models) throw new Error("a redo without today's prices");
  const variants = await variantsOf(store, run, pricesNow(items, facts, charges));
  withinPrice(variants, agreed);
  return {
    run: await addVariants(store, run, variants),
    done: `${variants.map(({ rowId }) => rowId).join(", ")} ${variants.length === 1 ? "is" : "are"} to be made`,
  };
}

async function retry(
  { store, facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  agreed: Credits,
): Promise<string> {
  const failed = pricesNow(
    items.filter(({ state }) => state === "failed"),
    facts,
    charges,
  );
  if (failed.length === 0)
    throw new EarlyExit("usage", `nothing to retry in run ${run.id}: none of them is failed any more`);
  withinPrice(failed, agreed);
  for (const { id, price } of failed) await store.apply(id, "retry", { nextAt: 0, price });
  return `${count(failed.length, "failed item")} ${failed.length === 1 ? "is" : "are"} to be submitted again`;
}

async function resolve(
  { store, books, facts, charges }: ItemWork,
  [item]: readonly Item[],
  order: Exclude<ItemOrder, { do: "redo" | "retry" }>,
): Promise<string> {
  if (!item) throw new Error(`an order to ${order.do} nothing`);
  mustBeHeld(item);
  const { rowId } = item;
  switch (order.do) {
    case "skip":
      await store.apply(item.id, "skipped", { note: "skipped by a person" });
      return `${rowId} is given up; what it may have cost stays counted`;
    case "refetch":
      await refetch(store, item);
      return `the outputs of ${rowId} are to be fetched again`;
    case "adopt":
      if (!books || !facts.task) throw new Error("a task is adopted without its record");
      await adopt(store, books, item, facts.task);
      return `task ${order.task} is the one of ${rowId}`;
    default: {
      const priced = pricesNow([item], facts, charges);
      withinPrice(priced, order.agreed);
      for (const { id, price } of priced) await store.apply(id, "resubmit", { nextAt: 0, price });
      return `${rowId} is to be submitted again`;
    }
  }
}

/** Nobody pays more than they agreed to: prices may have changed since. */
function withinPrice(items: readonly Pick<NewItem, "price">[], agreed: Credits): void {
  const price = plus(...items.map((item) => item.price));
  if (price <= agreed) return;
  throw new EarlyExit(
    "usage",
    `it costs more by now: expected at most ${showCredits(agreed)} as agreed to, got ${inCredits(price)}. Nothing was changed.`,
  );
}
