import { expect, test } from "vitest";
import { EarlyExit, exitCode, exitCodes, exitNameOf, weightiest } from "../../src/core/exit.js";

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

test("a code has the name of its reason, and none if it is none of ours", () => {
  expect(exitCodes.map(({ code }) => exitNameOf(code))).toEqual(exitCodes.map(({ name }) => name));
  expect([exitNameOf(137), exitNameOf(null)]).toEqual([null, null]);
});

test("an early end carries its exit code, its message and what led to it", () => {
  const cause = new Error("refused");
  expect(new EarlyExit("key", "The key was refused.", null, { cause })).toMatchObject({
    name: "EarlyExit",
    exit: "key",
    message: "The key was refused.",
    problems: null,
    cause,
  });
});
