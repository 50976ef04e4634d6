import type { Problem } from "../core/problem.js";
import { quotedCells, spreadsheetText } from "../text/spreadsheet-cell.js";
import { writeWhole } from "../whole-file.js";

const header = ["file", "row", "column", "id", "problem", "expected", "got", "nearest"];

const linesAtOnce = 1_000;

/** Writes the skipped rows, for the person who corrects the sheet. Replaces an older file with that name. */
export async function writeProblemsCsv(path: string, problems: Iterable<Problem>): Promise<void> {
  const { stringify } = await import("csv-stringify/sync");
  const text = (rows: string[][]) =>
    stringify(rows, { record_delimiter: "windows", quoted_match: quotedCells });
  function* pieces() {
    let lines: string[][] = [header];
    for (const problem of problems) {
      lines.push(cellsOf(problem).map(spreadsheetText));
      if (lines.length < linesAtOnce) continue;
      yield text(lines);
      lines = [];
    }
    yield text(lines);
  }
  await writeWhole(path, pieces());
}

function cellsOf({ place, message, expected, got, nearest }: Problem): string[] {
  // If a problem has no row, its line is the next best thing.
  const row = place.row ?? (place.line === undefined ? "" : `line ${place.line}`);
  return [place.file, String(row), place.column ?? "", place.id ?? "", message, expected, got, nearest ?? ""];
}
