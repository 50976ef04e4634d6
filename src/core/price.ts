import { itemParams } from "./identity.js";
import type { Credits } from "./money.js";

/** The model of a price group. */
export function modelOfGroup(group: string): string {
  return (JSON.parse(group) as [string])[0];
}

/** A price group in the words of a manifest. */
export function groupText(group: string): string {
  const [model, params] = JSON.parse(group) as [string, [string, string][]];
  return [model, ...params.map(([key, value]) => `${key}=${value}`)].join(" ");
}

/**
 * What an item is offered at that is to be paid for once more: no less than the price that is told, and no less than
 * its like was charged, because nobody pays more than they agreed to.
 */
export function offeredPrice(
  item: { model: string; params: Readonly<Record<string, string>> },
  told: Credits,
  charges: ReadonlyMap<string, Credits>,
): Credits {
  const charge = charges.get(priceGroup(item)) ?? told;
  return charge > told ? charge : told;
}

/**
 * What prices are learned for: a model with its params. Two items of one group are expected to cost the same. The
 * group's name is text, so that a database can hold and compare it.
 */
export function priceGroup(item: { model: string; params: Readonly<Record<string, string>> }): string {
  return JSON.stringify([item.model, itemParams(item.params)]);
}
