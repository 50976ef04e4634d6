import type { Task } from "../../api/records.js";
import { ServiceError } from "../../client/service.js";
import { EarlyExit } from "../../core/exit.js";
import { type Credits, plus } from "../../core/money.js";
import type { ItemOrder } from "../../core/ports/orders.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import type { Continuation } from "../run/continue-job.js";
import type { OpenAccount } from "../workspace/account.js";
import { type Facts, orderItems, pricesNow } from "./apply.js";

/** What a person wants of items, found and checked before anything is locked, asked or changed. */
export interface Wanted {
  run: Run;
  /** What is paid for has the price last known as the one agreed to. */
  order: ItemOrder;
  /** What it is about, as it is shown before it is paid for. */
  offered: readonly Offered[];
}

export type Offered = Pick<Item, "rowId" | "model" | "params" | "price">;

/** Finds what is wanted. Throws EarlyExit where there is nothing to do it to. */
export type Wish = (store: Store) => Promise<Wanted>;

/** Asked before anything is paid: the items and what they cost together. */
export type PriceConsent = (offered: readonly Offered[], credits: Credits) => Promise<boolean>;

/** Does what is wanted in this process, and lets its run go on with it. */
export function continuationOf(wish: Wish, consent: PriceConsent): Continuation {
  let wanted: Wanted | null = null;
  return {
    async choose(store) {
      wanted = await wish(store);
      return wanted.run;
    },
    async change({ store, account }) {
      if (!wanted) throw new Error("a wish that was never found");
      const { run, order, offered } = wanted;
      const facts = await factsFor(order, account);
      const charges = await account.accounts.highestCharges(account.accountId());
      const agreed = await agreedTo(order, pricesNow(offered, facts, charges), consent);
      const { run: changed } = await orderItems({ store, books: account.books, facts, charges }, run, agreed);
      return { ...changed, requests: changed.requests + (needsFacts(order) ? 1 : 0) };
    },
  };
}

/** The order with the price that the person has agreed to, where it has one. Throws EarlyExit where they do not. */
export async function agreedTo(
  order: ItemOrder,
  offered: readonly Offered[],
  consent: PriceConsent,
): Promise<ItemOrder> {
  if (!("agreed" in order)) return order;
  const agreed = plus(...offered.map(({ price }) => price));
  if (await consent(offered, agreed)) return { ...order, agreed };
  throw new EarlyExit("usage", "not confirmed; nothing was submitted");
}

/** Whether the service must be asked before an order can be carried out. */
export function needsFacts(order: ItemOrder): boolean {
  return order.do === "adopt" || order.do === "redo";
}

/** Who is asked what an order turns on. */
export type Asked = Pick<OpenAccount, "service" | "models">;

/** Asks the service what the order turns on. Throws EarlyExit. */
export async function factsFor(order: ItemOrder, account: Asked): Promise<Facts> {
  if (order.do === "redo") return { models: await account.models() };
  if (order.do === "adopt") return { task: await taskOf(order.task, account) };
  return {};
}

function taskOf(taskId: string, { service }: Asked): Promise<Task> {
  return service.taskRecord(taskId).catch((error: unknown) => {
    if (!(error instanceof ServiceError)) throw error;
    if (error.kind === "interrupted") throw new EarlyExit("interrupted", "interrupted; nothing was changed");
    const reason = error.message.replace(/\.$/, "");
    throw new EarlyExit("usage", `task ${taskId} cannot be adopted: ${reason}. Nothing was changed.`);
  });
}
