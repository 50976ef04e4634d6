import type { ItemState } from "../core/item.js";

/** What people read for the states of items, in every view of a run and in this order. */
export const stateWords: Readonly<Record<ItemState, string>> = {
  archived: "archived",
  failed: "failed",
  held: "held",
  unknown: "unknown",
  overdue: "overdue",
  processing: "at the service",
  submitting: "submitting",
  ready: "to fetch",
  planned: "to submit",
  blocked: "blocked",
  dropped: "dropped",
};

/** In the order in which people read them. */
export const orderedStates = Object.keys(stateWords) as ItemState[];

/** `12 archived`, `6 to submit` and so on, for each of these states that items are in. */
export function countedStates(
  counts: Readonly<Record<ItemState, number>>,
  states: readonly ItemState[] = orderedStates,
): string[] {
  return states.filter((state) => counts[state] > 0).map((state) => `${counts[state]} ${stateWords[state]}`);
}
