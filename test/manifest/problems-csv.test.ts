import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Problem } from "../../src/core/problem.js";
import { writeProblemsCsv } from "../../src/manifest/problems-csv.js";
import { fromSpreadsheetText, spreadsheetText } from "../../src/text/spreadsheet-cell.js";
import { folderWith } from "./folder.js";

async function written(...problems: Problem[]): Promise<string[][]> {
  const path = join(await folderWith({}), "problems.csv");
  await writeProblemsCsv(path, problems);
  return parse(await readFile(path));
}

const problem: Problem = {
  place: { file: "sheet.csv", row: 7, column: "model", id: "a" },
  message: 'unknown model "fluxx"',
  expected: "one of: flux, other",
  got: "fluxx",
  nearest: "flux",
};

test("a problem is a line with its place, what was expected and found, and the nearest value", async () => {
  expect(await written(problem)).toEqual([
    ["file", "row", "column", "id", "problem", "expected", "got", "nearest"],
    ["sheet.csv", "7", "model", "a", 'unknown model "fluxx"', "one of: flux, other", "fluxx", "flux"],
  ]);
});

test("a problem without a row names its line, and what is missing is an empty cell", async () => {
  const place = { file: "job.json", row: null, line: 3, lineColumn: 9 };
  expect((await written({ place, message: "m", expected: "e", got: "g" }))[1]).toEqual([
    "job.json",
    "line 3",
    "",
    "",
    "m",
    "e",
    "g",
    "",
  ]);
});

test("no cell can begin like a formula, and every text comes back whole (P24)", async () => {
  const text = fc.string({ unit: fc.constantFrom(...'=+-@\t\r\n",a é'.split("")), maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 20 }), async (texts) => {
      const rows = (await written(...texts.map((got) => ({ ...problem, got })))).slice(1);
      const cells = rows.map((row) => row[6] ?? "");
      expect(cells.filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
      expect(cells.map(fromSpreadsheetText)).toEqual(texts);
      expect(cells).toEqual(texts.map(spreadsheetText));
    }),
    { numRuns: 30 },
  );
});
