import { type ItemState, wantedItems } from "../item.js";

/** Of the items that are not done, those that need no person. */
const openStates: readonly ItemState[] = ["submitting", "processing", "ready", "planned"];

/**
 * About how many milliseconds a run still needs, this long after it was started here. Null if nothing is open, or if there
 * is no forecast.
 *
 * A run that is ahead of its forecast needs the same share of the forecast as of its items. One that is behind, as most
 * are until their first items are done, needs the rest of the forecast; later at least the same share of the time that it
 * has taken.
 */
export function timeLeftMs(
  counts: Readonly<Partial<Record<ItemState, number>>>,
  forecastMs: number | null,
  elapsedMs: number,
): number | null {
  const open = openStates.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  if (forecastMs === null || open === 0) return null;
  const share = (open + (counts.blocked ?? 0)) / wantedItems(counts);
  const isAhead = 1 - share > elapsedMs / forecastMs;
  if (isAhead) return share * forecastMs;
  return Math.max(forecastMs - elapsedMs, share < 1 ? share * elapsedMs : 0);
}
