import type { NewItem } from "../../src/core/ports/store.js";
import type { Mutant } from "./mutants.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where a person is asked, or one item of a kind goes first. */
export const approvalMutants: readonly Mutant[] = [
  {
    name: "asks nobody for an approval",
    matters: asks,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          enroll: (run, items, unselected) =>
            parts.store.enroll(run, [...items].map(withoutApproval), unselected),
        },
      }),
    }),
  },
  {
    name: "submits all items of a kind beside its canary",
    matters: ({ canary }) => canary === true,
    make: () => ({ parts: (parts) => ({ ...parts, store: { ...parts.store, canaries: async () => {} } }) }),
  },
];

/** Some item takes the output of one that has to be approved. */
function asks({ items }: Scenario): boolean {
  const asked = new Set(items.filter(({ approve }) => approve).map(({ id }) => id));
  return items.some(({ takes = [] }) => takes.some(({ of }) => asked.has(of)));
}

function withoutApproval({ approve: _, ...item }: NewItem): NewItem {
  return item;
}
