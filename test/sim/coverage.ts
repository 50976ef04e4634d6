import { type ItemState, itemStates } from "../../src/core/item.js";
import type { FaultKind } from "./scenario.js";
import { swarmKinds } from "./swarm.js";

/** Which faults can meet an item in which state, and which of these pairs have been reached. */

const lasting: readonly FaultKind[] = [
  ...(["crash", "power-cut", "clock-jump", "foreign-writer", "disk-full", "stranger-file"] as const),
];
const ofPosts: readonly FaultKind[] = [
  "generation-error",
  "task-fails",
  "task-never-finishes",
  "task-vanishes",
];

/** Why a fault cannot meet an item in a state. The first that holds counts. */
const impossible: readonly { why: string; holds(kind: FaultKind, state: ItemState): boolean }[] = [
  {
    why: "only the outputs of a ready item are fetched",
    holds: (kind, state) => kind.startsWith("download-") && state !== "ready",
  },
  {
    why: "it comes with the answer to a paid request, and only then is its item submitting",
    holds: (kind, state) => ofPosts.includes(kind) && state !== "submitting",
  },
  {
    why: "an internal error is an answer to a look, and an item that is being submitted has no task to look at",
    holds: (kind, state) => kind === "internal-error" && state === "submitting",
  },
  {
    why: "no request is made for an item in this state, but for new addresses of what it has made",
    holds: (kind, state) => {
      const isAsked = ["submitting", "processing", "overdue", "ready"].includes(state);
      return !lasting.includes(kind) && !isAsked;
    },
  },
];

function reasonAgainst(kind: FaultKind, state: ItemState): string | null {
  return impossible.find(({ holds }) => holds(kind, state))?.why ?? null;
}

function possibleStates(kind: FaultKind): readonly ItemState[] {
  return itemStates.filter((state) => reasonAgainst(kind, state) === null);
}

/** One line for each kind: how often it happened, and in which states; and the possible pairs that did not occur. */
export function coverage(
  faults: ReadonlyMap<FaultKind, number>,
  reached: ReadonlyMap<string, number>,
): { lines: string[]; missing: string[] } {
  const rows = swarmKinds.map((kind) => {
    const pairs = possibleStates(kind).map((state) => {
      const count = reached.get(`${kind} ${state}`) ?? 0;
      return count === 0 ? `${state} MISSING` : `${state} ${count}`;
    });
    return `${kind.padEnd(20)} ${String(faults.get(kind) ?? 0).padStart(7)}   ${pairs.join(", ")}`;
  });
  const possible = swarmKinds.flatMap((kind) => possibleStates(kind).map((state) => `${kind} ${state}`));
  const missing = possible.filter((pair) => !reached.has(pair));
  const all = swarmKinds.length * itemStates.length;
  const eachReason = impossible.map(({ why }) => {
    const pairs = swarmKinds.flatMap((kind) =>
      itemStates.filter((state) => reasonAgainst(kind, state) === why),
    );
    return `  ${String(pairs.length).padStart(3)}: ${why}`;
  });
  const reasons = [`${all - possible.length} of ${all} pairs are impossible:`, ...eachReason];
  const sum = `${possible.length - missing.length} of ${possible.length} possible pairs of fault and state reached`;
  const without = missing.length === 0 ? [] : [`not reached: ${missing.join(", ")}`];
  return { lines: [...rows, ...reasons, sum, ...without], missing };
}
