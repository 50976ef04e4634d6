import { expect, test } from "vitest";
import { rowIdOf, variantName, variantNumber } from "../../src/core/variant.js";

test("a variant is named after its row, with its number", () => {
  expect(variantName("cup", 2)).toBe("cup-v2");
  expect(variantName("cup-v2", 12)).toBe("cup-v2-v12");
});

test("the row of a variant is found again, also if its own id looks like a variant's", () => {
  expect(rowIdOf({ rowId: "cup", variant: 1 })).toBe("cup");
  expect(rowIdOf({ rowId: "cup-v2", variant: 2 })).toBe("cup");
  expect(rowIdOf({ rowId: "cup-v2-v12", variant: 12 })).toBe("cup-v2");
  expect(rowIdOf({ rowId: "cup-v2", variant: 1 })).toBe("cup-v2");
});

test("an id that ends in a number of variants may be a variant's", () => {
  expect(["cup-v2", "cup-v12"].map(variantNumber)).toEqual([2, 12]);
  expect(["cup", "cup-v", "cup-v2b", "cup-va", "v2"].map(variantNumber)).toEqual(Array(5).fill(null));
});
