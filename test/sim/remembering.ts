import type { Store } from "../../src/core/store.js";

/** Methods of a store that change nothing. */
export const storeLooks = [
  ...([
    "itemsOf",
    "run",
    "runs",
    "find",
    "due",
    "waiting",
    "groups",
    "counts",
    "item",
    "items",
    "spending",
  ] as const),
  ...([
    "attempt",
    "outputs",
    "filesOf",
    "interrupted",
    "waitingOrders",
    "attemptBooked",
    "resubmitted",
  ] as const),
];

/**
 * A store whose answers are kept until something is written. A run that waits asks the same at every turn, for days of
 * virtual time, and nothing but its own writes can change the answer.
 */
export function remembering(store: Store): Store {
  const answers = new Map<string, Promise<unknown>>();
  const methods = Object.entries(store).map(([name, act]: [string, (...values: unknown[]) => unknown]) => {
    const looksOnly = (storeLooks as readonly string[]).includes(name);
    const call = (...values: unknown[]) => {
      if (!looksOnly) {
        answers.clear();
        return act(...values);
      }
      const question = `${name} ${JSON.stringify(values)}`;
      const answer = answers.get(question) ?? (act(...values) as Promise<unknown>);
      answers.set(question, answer);
      return answer;
    };
    return [name, call];
  });
  return Object.fromEntries(methods) as Store;
}
