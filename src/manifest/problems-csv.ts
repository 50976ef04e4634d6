import { writeFile } from "node:fs/promises";
import type { Problem } from "../core/problem.js";
import { spreadsheetText } from "../core/spreadsheet-text.js";

const header = ["file", "row", "column", "id", "problem", "expected", "got", "nearest"];

/** Writes what was skipped, for the person who mends the sheet. Replaces an older file of that name. */
export async function writeProblemsCsv(path: string, problems: readonly Problem[]): Promise<void> {
  const { stringify } = await import("csv-stringify/sync");
  const rows = [header, ...problems.map((problem) => cellsOf(problem).map(spreadsheetText))];
  await writeFile(path, stringify(rows, { record_delimiter: "windows" }));
}

function cellsOf({ place, message, expected, got, nearest }: Problem): string[] {
  // Where a problem has no row, its line is the next best thing.
  const row = place.row ?? (place.line === undefined ? "" : `line ${place.line}`);
  return [place.file, String(row), place.column ?? "", place.id ?? "", message, expected, got, nearest ?? ""];
}
