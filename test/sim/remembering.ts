import type { Store } from "../../src/store/workspace/workspace.js";

/** What a run asks at every turn. */
const eachTurn: readonly string[] = ["due", "waiting", "spending"];

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
    "attemptOfEntry",
    "attempted",
    "resubmitted",
    "parentsOf",
    "handingOn",
    "blocked",
  ] as const),
];

interface Answer {
  to: unknown;
  answer: unknown;
}

/**
 * A store whose answers are kept until something is written. A run that waits asks the same at every turn, for days of
 * virtual time, and nothing but its own writes can change the answer.
 */
export function remembering(store: Store): Store {
  const answers = new Map<string, Answer>();
  const given = Object.entries(store) as unknown as [string, (...values: unknown[]) => unknown][];
  const methods = given.map(([name, act]) => {
    const remembered = (...values: unknown[]) => {
      const last = answers.get(name);
      if (last !== undefined && isSame(last.to, values)) return last.answer;
      const answer = act(...values);
      answers.set(name, { to: values, answer });
      return answer;
    };
    const forgetting = (...values: unknown[]) => {
      answers.clear();
      return act(...values);
    };
    const keeps = (storeLooks as readonly string[]).includes(name) || besides.includes(name);
    return [name, eachTurn.includes(name) ? remembered : keeps ? act : forgetting];
  });
  return Object.fromEntries(methods) as unknown as Store;
}

/** Whether two values say the same: plain ones, and lists and records of them. */
function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const [keys, others] = [Object.keys(a), Object.keys(b)];
  return (
    keys.length === others.length &&
    keys.every((key) => isSame((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  );
}
