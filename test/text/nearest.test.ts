import { expect, test } from "vitest";
import { nearest } from "../../src/text/nearest.js";

test("the nearest name is offered when it is near, whatever its case", () => {
  expect(nearest("Fluxx", ["dream", "flux", "tone"])).toBe("flux");
  expect(nearest("promt", ["prompt", "params.size"])).toBe("prompt");
});

test("letters typed in another order are one slip", () => {
  expect(nearest("rnu", ["plan", "run", "redo"])).toBe("run");
  expect(nearest("yse", ["yes", "json"])).toBe("yes");
});

test("nothing is offered when nothing is near", () => {
  expect(nearest("zebra", ["prompt", "model"])).toBeUndefined();
  expect(nearest("Produkt", ["prompt", "model"])).toBeUndefined();
  expect(nearest("x", [])).toBeUndefined();
});
