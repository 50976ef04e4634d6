import { type Credits, minus, plus } from "../money.js";

/** Of which prices an amount may be made up. */

interface Priced {
  price: Credits;
}

/** With more than these, almost any amount could be composed of their prices. */
export const composedMax = 10;

/** All choices among some, none and all of them included. */
export function subsets<Each>(all: readonly Each[]): Each[][] {
  const chosen: Each[][] = [[]];
  for (const one of all) chosen.push(...chosen.map((some) => [...some, one]));
  return chosen;
}

/** Whether an amount is what these cost, less what some of the others may have given back. */
export function isComposed(amount: Credits, cost: readonly Priced[], returned: readonly Priced[]): boolean {
  const sum = plus(...cost.map(({ price }) => price));
  return subsets(returned).some((back) => minus(sum, plus(...back.map(({ price }) => price))) === amount);
}
