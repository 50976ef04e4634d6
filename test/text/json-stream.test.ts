import { expect, test } from "vitest";
import { jsonPieces } from "../../src/text/pieces.js";

test("an object comes out as JSON.stringify has it, its listings as arrays", () => {
  function* numbers() {
    for (let number = 0; number < 30_000; number++) yield { number };
  }
  const listed = { length: 30_000, [Symbol.iterator]: numbers };
  const none = { length: 0, *[Symbol.iterator]() {} };
  const object = { a: "x", none, left: undefined, listed, plain: [1, null], deep: { b: [] } };
  const pieces = [...jsonPieces(object)];
  expect(JSON.parse(pieces.join(""))).toEqual({
    a: "x",
    none: [],
    plain: [1, null],
    deep: { b: [] },
    listed: [...numbers()],
  });
  expect(pieces.length).toBeGreaterThan(5);
  expect(pieces.join("").trimEnd()).not.toContain("\n");
  const lines = [...jsonPieces(object, "\n")].join("");
  expect(JSON.parse(lines)).toEqual(JSON.parse(pieces.join("")));
  expect(lines.split("\n").length).toBeGreaterThan(30_000);
  expect(JSON.parse([...jsonPieces({})].join(""))).toEqual({});
});
