import { EarlyExit } from "../../core/exit.js";
import { type Credits, plus } from "../../core/money.js";
import type { ItemOrder } from "../../core/ports/orders.js";
import type { Item, Run, Store } from "../../core/ports/store.js";

/** What a person wants of items, found and checked before anything is locked, asked or changed. */
export interface ItemRequest {
  run: Run;
  /** What is paid for has the price last known as the one agreed to. */
  order: ItemOrder;
  /** What it is about, as it is shown before it is paid for. */
  offered: readonly Offered[];
}

export type Offered = Pick<Item, "rowId" | "model" | "params" | "price">;

/** Finds what is wanted. Throws EarlyExit where there is nothing to do it to. */
export type FindItems = (store: Store) => Promise<ItemRequest>;

/** Asked before anything is paid: the items and what they cost together. */
export type PriceConsent = (offered: readonly Offered[], credits: Credits) => Promise<boolean>;

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
