import { expect, test } from "vitest";
import { defined } from "../../src/core/defined.js";

test("only an undefined field leaves a default as it is", () => {
  const given = { lanes: undefined, items: 0, name: "", cap: null, isQuiet: false };
  const { lanes: _, ...rest } = given;
  expect({ lanes: 4, items: 7, ...defined(given) }).toEqual({ ...rest, lanes: 4 });
});
