import { credits, toNumber } from "../../src/core/money.js";
import type { Chance } from "./chance.js";
import { priceOf } from "./models.js";
import type { Scenario } from "./scenario.js";

/** What the service charges for one model, from a moment on, in place of the price that it lists. */
export interface OtherPrice {
  model: string;
  credits: number;
  /** Milliseconds after the beginning; 0 is from the first request on. */
  fromMs: number;
  /** Whether the user agrees to pay more than was planned, once that is reported. */
  agrees: boolean;
}

/**
 * In some runs, a price that is not the planned one: more often a higher one. It is no sum of listed prices, because a
 * charge that is another request's price to a millionth is what nobody could tell from that.
 */
export function otherPriceOf(lot: Chance, { items }: Pick<Scenario, "items">): OtherPrice | null {
  if (!lot.is(0.15)) return null;
  const { model } = lot.pick(items);
  const isHigher = lot.is(0.75);
  const factor = isHigher ? lot.scale(105, 400) / 100 : lot.scale(10, 95) / 100;
  return {
    model,
    credits: toNumber(credits(priceOf(model) * factor + 0.000_7)),
    fromMs: lot.is(0.4) ? 0 : lot.scale(1_000, lot.is(0.8) ? 600_000 : 7_200_000),
    agrees: lot.is(0.5),
  };
}

/** The most that one generation may be charged. */
export function highestPriceOf({ otherPrice }: Scenario, model: string): number {
  const listed = priceOf(model);
  return otherPrice?.model === model ? Math.max(listed, otherPrice.credits) : listed;
}

/** The least that one is planned at or charged. */
export function lowestPriceOf({ otherPrice }: Scenario, model: string): number {
  const listed = priceOf(model);
  return otherPrice?.model === model ? Math.min(listed, otherPrice.credits) : listed;
}
