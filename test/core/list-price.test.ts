import { expect, test } from "vitest";
import { listPrice } from "../../src/core/list-price.js";
import { creditsWith } from "../../src/service/models/model.js";

const options = (prices: Record<string, unknown>) =>
  Object.entries(prices).map(([value, cost]) => ({
    value,
    label: value,
    ...(cost === null ? {} : { credits_cost: cost }),
  }));

const parameters = [
  {
    key: "size",
    label: "Size",
    type: "select",
    options: options({ small: 1, usual: null, large: 10 }),
    default: "usual",
  },
  {
    key: "speed",
    label: "Speed",
    type: "select",
    options: options({ slow: null, fast: 6 }),
    default: "slow",
  },
];

test.each([
  [{}, 4],
  [{ size: "large" }, 10],
  [{ size: "small" }, 1],
  [{ size: "large", speed: "fast" }, 12],
  [{ size: "small", speed: "fast" }, 3],
  [{ size: "unheard of" }, 4],
])("with %j a generation is listed at %d credits, by the service and by the plan", (params, price) => {
  const complete = { size: "usual", speed: "slow", ...params };
  expect(creditsWith({ credits: 4, parameters: parameters as never }, complete)).toBe(price);
  expect(listPrice({ credits_cost: 4, parameters }, params) / 1_000_000).toBe(price);
});

test.each([null, -3, Number.NaN, "12", {}])("a price of %j of an option changes nothing", (cost) => {
  const odd = [
    { key: "size", label: "Size", type: "select", options: options({ large: cost }), default: "large" },
  ];
  expect(listPrice({ credits_cost: 4, parameters: odd }, {}) / 1_000_000).toBe(4);
});
