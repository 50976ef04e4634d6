import type { MediaField } from "../../src/api/inputs.js";
import type { NewItem } from "../../src/core/ports/store.js";
import { hasReference } from "../../src/core/reference.js";
import { requestBody } from "../../src/run/submit.js";
import type { Mutant } from "./mutants.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where items take the outputs of others. */
export const chainMutants: readonly Mutant[] = [
  {
    name: "submits a child before its parent",
    matters: hasChains,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          enroll: (run, items, unselected) =>
            parts.store.enroll(run, [...items].map(withoutParents), unselected),
        },
      }),
    }),
  },
  {
    name: "releases a child as soon as one of its parents is made",
    matters: hasChains,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          enroll: (run, items, unselected) =>
            parts.store.enroll(run, [...items].map(withOneParent), unselected),
        },
      }),
    }),
  },
  {
    name: "hands on an address that has expired",
    matters: expiresSoon,
    make: () => ({
      session: ({ chains }) => {
        Object.assign(chains, { isFresh: () => true });
      },
    }),
  },
  {
    name: "hands on the first output in place of the second",
    matters: hasChains,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          parentsOf: async (item) => {
            const parents = await parts.store.parentsOf(item);
            const firstOf = async (id: number | null) =>
              id === null ? null : ((await parts.store.outputs(id))[0]?.url ?? null);
            return Promise.all(parents.map(async (parent) => ({ ...parent, url: await firstOf(parent.id) })));
          },
        },
      }),
    }),
  },
  {
    name: "pays a parent again for a new address",
    matters: expiresSoon,
    make: () => ({
      session: ({ chains, ports }) => {
        const { store, service } = ports;
        chains.renew = async (itemId, ticket) => {
          await service.generate(requestBody(await store.item(itemId)), ticket, "again");
        };
      },
    }),
  },
  {
    name: "forgets a child that was released",
    matters: hasChains,
    make: () => ({
      parts: (parts) => {
        const { store } = parts;
        return {
          ...parts,
          store: {
            ...store,
            complete: async (item, facts) => {
              await store.complete(item, facts);
              const [run] = (await store.runs()).filter(({ state }) => state === "running");
              for (const child of await store.items(run?.id ?? 0, ["planned"]))
                if (hasReference(child.inputs)) await store.wait(child.id);
            },
            handingOn: async () => [],
          },
        };
      },
    }),
  },
];

function hasChains({ items }: Scenario): boolean {
  return items.some(({ takes }) => takes !== undefined);
}

/** Addresses that are handed on live shorter than a run takes. */
function expiresSoon(scenario: Scenario): boolean {
  return hasChains(scenario) && (scenario.switches.urlMs ?? 0) < 300_000;
}

function withoutParents({ parents: _, inputs: __, ...item }: NewItem): NewItem {
  return { ...item, inputs: {} };
}

function withOneParent(item: NewItem): NewItem {
  const [first, ...others] = item.parents ?? [];
  if (first === undefined || others.length === 0) return item;
  const field: MediaField = first.field;
  return { ...item, parents: [first], inputs: { [field]: item.inputs[field] } };
}
