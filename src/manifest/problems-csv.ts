import { writeFile } from "node:fs/promises";
import type { Problem } from "../core/problem.js";

const header = ["file", "row", "column", "id", "problem", "expected", "got", "nearest"];

/** Writes what was skipped, for the person who mends the sheet. Replaces an older file of that name. */
export async function writeProblemsCsv(path: string, problems: readonly Problem[]): Promise<void> {
  const lines = [header, ...problems.map(cellsOf)].map((cells) => cells.map(encoded).join(","));
  await writeFile(path, `${lines.join("\r\n")}\r\n`);
}

function cellsOf({ place, message, expected, got, nearest }: Problem): string[] {
  // Where a problem has no row, its line is the next best thing.
  const row = place.row ?? (place.line === undefined ? "" : `line ${place.line}`);
  return [place.file, String(row), place.column ?? "", place.id ?? "", message, expected, got, nearest ?? ""];
}

/** A cell that a spreadsheet would take for a formula gets an apostrophe before it; then the usual quoting. */
function encoded(cell: string): string {
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
