import { expect, test } from "vitest";
import { mayBeVariant, rowIdOf, variantName } from "../../src/core/variant.js";

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
  expect(["cup-v2", "cup-v12"].map(mayBeVariant)).toEqual([true, true]);
  expect(["cup", "cup-v", "cup-v2b", "cup-va", "v2"].map(mayBeVariant)).toEqual(Array(5).fill(false));
});
