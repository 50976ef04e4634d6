import { expect, test } from "vitest";
import { mayHaveOtherKeys } from "../../../src/job/paid/rest-keys.js";

const sets = (...all: Record<string, string>[]) =>
  new Map([["a", all.map((each) => new Map(Object.entries(each)))]]);

// A run of a million items is continued without reading them where no other catalogue can have given them other keys.
test.each([
  ["one set", sets({ size: "1" }), {}, false],
  ["other values", sets({ size: "1" }, { size: "2" }), {}, false],
  ["a param that one of them lacks", sets({ size: "1" }, { size: "1", seed: "3" }), {}, true],
  ["a param that both lack of the other", sets({ size: "1" }, { seed: "3" }), {}, false],
  ["a default that the run has left out", sets({ size: "1" }, { seed: "3" }), { a: ["seed"] }, true],
  ["what another model has left out", sets({ size: "1" }, { seed: "3" }), { b: ["seed"] }, false],
])("%s", (_, made, leftOut, may) => {
  expect(mayHaveOtherKeys(made, leftOut)).toBe(may);
});
