import { itemParams } from "./identity.js";

/** The model of a price group. */
export function modelOfGroup(group: string): string {
  return (JSON.parse(group) as [string])[0];
}

/**
 * What prices are learned for: a model with its params. Two items of one group are expected to cost the same. The
 * group's name is text, so that a database can hold and compare it.
 */
export function priceGroup(item: { model: string; params: Readonly<Record<string, string>> }): string {
  return JSON.stringify([item.model, itemParams(item.params)]);
}
