import type { NewItem } from "../../src/core/ports/store.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import type { Mutant } from "./mutants.js";
import type { Swap } from "./runner.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where a person is asked, or one item of a kind goes first. */
export const approvalMutants: readonly Mutant[] = [
  {
    name: "asks nobody for an approval",
    matters: asks,
    store: enrolling(({ approve: _, ...item }) => item),
  },
  {
    name: "submits all items of a kind beside its canary",
    matters: ({ canary }) => canary === true,
    store: { canaries: async () => {} },
  },
];

/** A run begins with other items than were planned. */
export function enrolling(change: (item: NewItem) => NewItem): Swap<Store> {
  return ({ enroll }) => ({
    enroll: (run, items, unselected) => enroll(run, [...items].map(change), unselected),
  });
}

/** Some item takes the output of one that has to be approved. */
function asks({ items }: Scenario): boolean {
  const asked = new Set(items.filter(({ approve }) => approve).map(({ id }) => id));
  return items.some(({ takes = [] }) => takes.some(({ of }) => asked.has(of)));
}
