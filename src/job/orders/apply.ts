import type { ModelList, Task } from "../../api/records.js";
import { EarlyExit } from "../../core/exit.js";
import { offeredPrice } from "../../core/identity.js";
import { type Credits, inCredits, plus, showCredits } from "../../core/money.js";
import { type GivenOrder, type ItemOrder, isRunOrder } from "../../core/ports/orders.js";
import type { Books } from "../../core/ports/spend-log.js";
import type { Item, NewItem, Run, Store } from "../../core/ports/store.js";
import { freePlaces, left, NoRequestsUntil, owedRequests } from "../../core/quota/quota.js";
import { count } from "../../report/amounts.js";
import { claimantOf } from "../../run/debt.js";
import type { Session } from "../../run/session.js";
import { addVariants, todaysPrices, variantsOf } from "./redo.js";
import { type Asked, factsFor, needsFacts, type Offered } from "./request.js";
import { adopt, mustBeHeld, refetch } from "./resolve.js";

/** What the service said that an order turns on: the task to be adopted, today's prices. */
export interface Facts {
  task?: Task;
  models?: ModelList;
}

export interface ItemWork {
  store: Store;
  /** Null where there is no account, which only giving an item up can do without. */
  books: Books | null;
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

/**
 * What the service says about orders, asked beside the loop, which must not wait for it. A request is made only when it
 * has a place at once and takes none that paid work is owed.
 */
export class FactsOf {
  private readonly known = new Map<number, Facts | Error>();
  private readonly asking = new Map<number, Promise<void>>();

  constructor(
    private readonly session: Session,
    private readonly account: Asked,
  ) {}

  /** Asks for what an order turns on, unless that is known or under way. */
  async ask({ id, order }: GivenOrder): Promise<void> {
    if (isRunOrder(order) || !needsFacts(order) || this.known.has(id) || this.asking.has(id)) return;
    if (!(await this.hasPlace())) return;
    this.asking.set(id, this.read(id, order));
  }

  /** Null until they are known. Throws EarlyExit for what the service refused. */
  of({ id, order }: GivenOrder): Facts | null {
    if (isRunOrder(order) || !needsFacts(order)) return {};
    const found = this.known.get(id) ?? null;
    if (found instanceof Error) throw found;
    return found;
  }

  async close(): Promise<void> {
    await Promise.all(this.asking.values());
  }

  private async hasPlace(): Promise<boolean> {
    const { accounts, accountId, clock, store } = this.session.ports;
    const quota = await accounts.quota(accountId, claimantOf(this.session));
    const owed = owedRequests(await store.counts(this.session.settings.run.id));
    return freePlaces(quota, clock.now()) >= 1 && left(quota.day) - owed - quota.owedElsewhere >= 1;
  }

  private async read(id: number, order: ItemOrder): Promise<void> {
    this.session.gate.requests++;
    const found = await factsFor(order, this.account).catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    this.asking.delete(id);
    if (!isPassing(found)) this.known.set(id, found);
    this.session.ports.bell.ring();
  }
}

/** Interrupted, or no requests left: whoever waits for the order carries it out when this process has ended. */
function isPassing(found: Facts | Error): boolean {
  const ends = found instanceof EarlyExit && (found.exit === "interrupted" || found.exit === "unfinished");
  return ends || found instanceof NoRequestsUntil;
}
