import type { Store } from "../../src/core/store.js";

/** What a run asks at every turn. */
const eachTurn: readonly string[] = ["due", "waiting", "counts", "spending", "waitingOrders"];

/** Methods of a store that change nothing of that: a run's own state, and how many requests it has made. */
const besides: readonly string[] = ["setRun"];

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
    const remembered = (...values: unknown[]) => {
      const question = `${name} ${JSON.stringify(values)}`;
      const answer = answers.get(question) ?? (act(...values) as Promise<unknown>);
      answers.set(question, answer);
      return answer;
    };
    const forgetting = (...values: unknown[]) => {
      answers.clear();
      return act(...values);
    };
    const keeps = (storeLooks as readonly string[]).includes(name) || besides.includes(name);
    return [name, eachTurn.includes(name) ? remembered : keeps ? act : forgetting];
  });
  return Object.fromEntries(methods) as Store;
}
