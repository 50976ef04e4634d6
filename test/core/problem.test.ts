import { describe, expect, test } from "vitest";
import { digestOf, type Place, type Problem, partOf } from "../../src/core/problem.js";

const problem = (place: Partial<Place>, change: Partial<Problem> = {}): Problem => ({
  place: { file: "a.csv", row: 2, column: "model", ...place },
  message: 'unknown model "x"',
  expected: "a model",
  got: "x",
  ...change,
});
const told = (...problems: Problem[]) => digestOf(problems).reported;

describe("a mistake is listed once", () => {
  test("with the first four of its rows, and how many there are", () => {
    const [group, ...others] = told(...[2, 3, 5, 8, 13, 21].map((row) => problem({ row })));
    expect(others).toEqual([]);
    expect(group).toMatchObject({
      problem: { place: { row: 2 } },
      times: 6,
      rows: { first: [2, 3, 5, 8], count: 6 },
      valuesDiffer: false,
    });
  });

  test("where the combinations of a row have it, with that row once", () => {
    const combinations = ["lang=de", "lang=fr"].map((combination) => problem({ combination }));
    const [group] = told(...combinations, problem({ row: 3 }));
    expect(group).toMatchObject({ times: 3, rows: { first: [2, 3], count: 2 } });
  });

  test("where the values of a column are wrong in different ways, saying that they differ", () => {
    const [group] = told(problem({}), problem({ row: 3 }, { got: "y" }), problem({ row: 4 }));
    expect(group).toMatchObject({ times: 3, valuesDiffer: true, problem: { got: "x" } });
  });

  test.each<[string, Problem]>([
    ["of another file", problem({ file: "b.csv" })],
    ["of another column", problem({ column: "size" })],
    ["with another message", problem({}, { message: "no model" })],
    ["of which something else is expected", problem({}, { expected: "a free model" })],
    ["with another nearest value", problem({}, { nearest: "y" })],
  ])("but not with one %s", (_, other) => {
    expect(told(problem({}), other)).toHaveLength(2);
  });
});

describe("of a file without rows", () => {
  const at = (line: number, lineColumn: number, got = "x") =>
    problem({ row: null, line, lineColumn }, { got });

  test("a mistake is another one at each place, and with each value", () => {
    expect(told(at(1, 1), at(1, 2), at(2, 1), at(1, 1, "y"))).toHaveLength(4);
  });

  test("it has no rows, however often it is found", () => {
    expect(told(at(1, 1), at(1, 1))).toMatchObject([{ times: 2, rows: { first: [], count: 0 } }]);
  });
});

test("where a row is known, its line in the file makes no other mistake of it", () => {
  expect(told(problem({ line: 3 }), problem({ row: 3, line: 9 }))).toHaveLength(1);
});

test("a hundred mistakes are listed, and all are counted, also those that a repair would fix", () => {
  const many = Array.from({ length: 150 }, (_, index) =>
    problem({ row: index + 2 }, { message: `mistake ${index}`, ...(index % 2 === 0 ? { repair: "y" } : {}) }),
  );
  const again = problem({ row: 900 }, { message: "mistake 3" });
  const digest = digestOf([...many, again]);
  expect(digest).toMatchObject({ count: 151, repairs: 75 });
  expect(digest.reported).toHaveLength(100);
  expect(digest.reported.at(-1)?.problem.message).toBe("mistake 99");
  expect(Object.keys(digest.reported[3] ?? {})).toEqual([
    "problem",
    "times",
    "rows",
    "valuesDiffer",
    "totals",
  ]);
  expect(digest.reported[3]).toMatchObject({ times: 2, rows: { first: [5, 900], count: 2 } });
});

test("a problem's subject is its row, or one combination of it", () => {
  const subjects = [
    { row: 2 },
    { row: 2, combination: "lang=de" },
    { row: 2, combination: "lang=fr" },
    { row: 3 },
  ];
  expect(new Set(subjects.map(partOf)).size).toBe(4);
  expect(partOf({ row: 2 })).toBe(partOf({ row: 2 }));
});
