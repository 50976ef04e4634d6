import { expect, test } from "vitest";
import { exitCode, exitCodes, weightiest } from "../../src/core/exit.js";

test("with several reasons the first of 3 4 7 10 6 8 5 decides, and 1 and 130 override", () => {
  const order = [1, 130, 2, 9, 3, 4, 7, 10, 6, 8, 5];
  const names = order.map((code) => exitCodes.find((row) => row.code === code)?.name ?? "done");
  for (let from = 0; from < names.length; from++) {
    expect(exitCode(weightiest(names.slice(from).reverse()))).toBe(order[from]);
  }
});

test("a run without a reason is done", () => {
  expect(weightiest([])).toBe("done");
  expect(exitCode("done")).toBe(0);
});
