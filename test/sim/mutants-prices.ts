import type { Mutant } from "./mutants.js";
import { lowestPriceOf } from "./other-price.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where the service charges another price than was planned. */
export const priceMutants: readonly Mutant[] = [
  {
    name: "compares no prices",
    matters: getsDearer,
    session: ({ gate: { prices } }) => {
      const { charged } = prices;
      prices.charged = (item) => charged.call(prices, item, item.price);
    },
  },
  {
    name: "goes on at the planned price after it has named a dearer one",
    matters: getsDearer,
    session: ({ gate: { prices } }) => {
      prices.isBelow = () => false;
    },
  },
  {
    name: "sends the first of a model beside others",
    session: ({ gate: { prices } }) => {
      prices.allowed = (planned) => [...planned];
    },
  },
  {
    name: "forgets on resume what was charged",
    matters: getsDearer,
    session: ({ gate: { prices } }) => {
      const { recall } = prices;
      prices.recall = (item) => recall.call(prices, item, undefined);
    },
  },
  {
    name: "forgets what it had not remembered when it was killed",
    matters: getsDearer,
    store: ({ groups }) => ({
      groups: async (run) => (await groups(run)).map((group) => ({ ...group, charged: null })),
    }),
  },
  {
    name: "tells nobody of a dearer price",
    matters: getsDearer,
    session: ({ gate: { prices } }) => {
      prices.messages = () => [];
    },
  },
];

function getsDearer(scenario: Scenario): boolean {
  const { otherPrice } = scenario;
  return otherPrice !== undefined && lowestPriceOf(scenario, otherPrice.model) < otherPrice.credits;
}
