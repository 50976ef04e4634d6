/** Conditions of queries about lost requests, for the aliases of their tables. */

/** The request brought nothing, and was or may have been charged. */
export function isLost(attempt: string): string {
  return `${attempt}.outcome = 'unanswered' AND ${attempt}.verdict IN ('charged', 'undecided')`;
}

/** A person has yet to decide about the request: its item is held for it. */
export function isUndecided(attempt: string, item: string): string {
  return `(${item}.state = 'held' AND ${attempt}.number = ${newestNumber(item)})`;
}

export function newestNumber(item: string): string {
  return `(SELECT max(number) FROM attempts WHERE item_id = ${item}.id)`;
}
