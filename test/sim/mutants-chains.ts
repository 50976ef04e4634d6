import { hasReference } from "../../src/core/reference.js";
import { requestBody } from "../../src/run/submit.js";
import type { Mutant } from "./mutants.js";
import { enrolling } from "./mutants-approval.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where items take the outputs of others. */
export const chainMutants: readonly Mutant[] = [
  {
    name: "submits a child before its parent",
    matters: hasChains,
    store: enrolling(({ parents: _, inputs: __, ...item }) => ({ ...item, inputs: {} })),
  },
  {
    name: "releases a child as soon as one of its parents is made",
    matters: hasChains,
    store: enrolling((item) => {
      const [first, ...others] = item.parents ?? [];
      if (first === undefined || others.length === 0) return item;
      return { ...item, parents: [first], inputs: { [first.field]: item.inputs[first.field] } };
    }),
  },
  {
    name: "hands on an address that has expired",
    matters: expiresSoon,
    session: ({ chains }) => {
      Object.assign(chains, { isFresh: () => true });
    },
  },
  {
    name: "hands on the first output in place of the second",
    matters: hasChains,
    store: ({ parentsOf, outputs }) => ({
      parentsOf: async (item) => {
        const firstOf = async (id: number | null) =>
          id === null ? null : ((await outputs(id))[0]?.url ?? null);
        const parents = await parentsOf(item);
        return Promise.all(parents.map(async (parent) => ({ ...parent, url: await firstOf(parent.id) })));
      },
    }),
  },
  {
    name: "pays a parent again for a new address",
    matters: expiresSoon,
    session: ({ chains, ports: { store, service } }) => {
      chains.renew = async (itemId, ticket) => {
        await service.generate(requestBody(await store.item(itemId)), ticket, "again");
      };
    },
  },
  {
    name: "forgets a child that was released",
    matters: hasChains,
    store: (store) => ({
      complete: async (item, facts) => {
        await store.complete(item, facts);
        const [run] = (await store.runs()).filter(({ state }) => state === "running");
        for (const child of await store.items(run?.id ?? 0, ["planned"]))
          if (hasReference(child.inputs)) await store.wait(child.id);
      },
      handingOn: async () => [],
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
