import { type ItemState, itemStates } from "../../src/core/item.js";
import type { FaultKind } from "./scenario.js";
import { swarmKinds } from "./swarm.js";

/** Which faults can meet an item in which state, and which of these pairs have been reached. */

const requestStates: readonly ItemState[] = ["submitting", "processing", "overdue", "ready"];
/** Simulated items depend on no others, so none is blocked, and nobody drops one. */
const anyState = itemStates.filter((state) => state !== "blocked" && state !== "dropped");

export function possibleStates(kind: FaultKind): readonly ItemState[] {
  if (kind.startsWith("download-")) return ["ready"];
  if (kind.startsWith("task-") || kind === "generation-error") return ["submitting"];
  if (kind === "internal-error") return ["processing", "overdue", "ready"];
  const anyTime = ["crash", "power-cut", "clock-jump", "foreign-writer", "disk-full", "stranger-file"];
  return anyTime.includes(kind) ? anyState : requestStates;
}

/** One line for each kind: how often it happened, and in which states; missing pairs are marked. */
export function coverageTable(
  faults: ReadonlyMap<FaultKind, number>,
  reached: ReadonlyMap<string, number>,
): string[] {
  const rows = swarmKinds.map((kind) => {
    const pairs = possibleStates(kind).map((state) => {
      const count = reached.get(`${kind} ${state}`) ?? 0;
      return count === 0 ? `${state} MISSING` : `${state} ${count}`;
    });
    return `${kind.padEnd(20)} ${String(faults.get(kind) ?? 0).padStart(7)}   ${pairs.join(", ")}`;
  });
  const possible = swarmKinds.flatMap((kind) => possibleStates(kind).map((state) => `${kind} ${state}`));
  const missing = possible.filter((pair) => !reached.has(pair));
  const sum = `${possible.length - missing.length} of ${possible.length} possible pairs of fault and state reached`;
  return [...rows, sum, ...(missing.length === 0 ? [] : [`not reached: ${missing.join(", ")}`])];
}
