import type { Problem } from "../core/problem.js";
import { fromSpreadsheetText } from "../core/spreadsheet-text.js";
import { columnName } from "./columns.js";
import type { Source, SourceRow } from "./source.js";

/**
 * Records of cells, as a sheet has them, become rows: the first one that says something is the header, blank ones and
 * comments are passed over, and what does not fit under the header is told. A record's index is its row in the sheet.
 */
export function sheetOf(file: string, records: readonly (readonly string[])[]): Source {
  const at = headerIndex(records);
  const header = (records[at] ?? []).map(columnName);
  const problems = headerProblems(file, header, at + 1);
  const rows: SourceRow[] = [];
  const comments: number[] = [];
  for (const [index, record] of records.entries()) {
    if (isBlank(record)) continue;
    if (index !== at && isComment(record, header.length)) comments.push(index + 1);
    if (index <= at || isComment(record, header.length)) continue;
    const wrong = shapeProblem(file, header, record, index + 1);
    if (wrong) problems.push(wrong);
    else rows.push({ number: index + 1, file, cells: cellsOf(header, record) });
  }
  const columns = header.filter((name) => name !== "");
  return { columns, rows, problems, notes: commentNotes(comments) };
}

/** The index of the header among records, or -1. */
export function headerIndex(records: readonly (readonly string[])[]): number {
  return records.findIndex((record) => !isBlank(record) && !isComment(record, Number.POSITIVE_INFINITY));
}

function isBlank(record: readonly string[]): boolean {
  return record.every((cell) => cell.trim() === "");
}

/**
 * A comment begins with `#` and has nothing else in its row; with a comma in it, which made cells of it, it is known
 * by `# ` and by not fitting under the header. In a sheet of one column only `# ` begins one: `#sunset` is a prompt.
 */
function isComment(record: readonly string[], columns: number): boolean {
  const first = record[0]?.trimStart() ?? "";
  if (!first.startsWith("#")) return false;
  const spaced = /^#(\s|#|$)/.test(first);
  if (isBlank(record.slice(1)) && columns > 1) return true;
  return spaced && (columns === 1 ? record.length === 1 : record.length !== columns);
}

const numbersMax = 5;

function commentNotes(rows: readonly number[]): string[] {
  if (rows.length === 0) return [];
  const shown = rows.slice(0, numbersMax).join(", ");
  const more = rows.length > numbersMax ? ` and ${rows.length - numbersMax} more` : "";
  return [
    `${rows.length === 1 ? "row" : "rows"} ${shown}${more} begin${rows.length === 1 ? "s" : ""} with # and ${rows.length === 1 ? "is a comment" : "are comments"}`,
  ];
}

/** Cells that are not empty. `Object.fromEntries`, because assigning to a column named `__proto__` would lose it. */
function cellsOf(header: readonly string[], record: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    header.flatMap((name, index) => {
      const cell = record[index] ?? "";
      return name === "" || cell.trim() === "" ? [] : [[name, fromSpreadsheetText(cell)]];
    }),
  );
}

function headerProblems(file: string, header: readonly string[], row: number): Problem[] {
  const seen = new Map<string, number>();
  const problems: Problem[] = [];
  for (const [index, name] of header.entries()) {
    const earlier = seen.get(name);
    if (name !== "" && earlier !== undefined) {
      problems.push({
        place: { file, row: null, column: name },
        message: `two columns are named "${name}"`,
        expected: `each name once in the header (row ${row})`,
        got: `columns ${earlier + 1} and ${index + 1}`,
      });
    }
    seen.set(name, index);
  }
  return problems;
}

/** Cells beyond the header are fine while they are empty: spreadsheets leave such trails. */
function shapeProblem(
  file: string,
  header: readonly string[],
  record: readonly string[],
  row: number,
): Problem | null {
  const stray = record.some((cell, index) => cell.trim() !== "" && (header[index] ?? "") === "");
  if (record.length >= header.length && !stray) return null;
  const id = record[header.indexOf("id")]?.trim();
  return {
    place: { file, row, ...(id ? { id } : {}) },
    message: stray ? "a cell has no column in the header" : "the row has too few cells",
    expected: `${count(header.length)}, as in the header`,
    got: `${count(record.length)}: ${excerpt(record)}`,
  };
}

function count(cells: number): string {
  return cells === 1 ? "1 cell" : `${cells} cells`;
}

function excerpt(record: readonly string[]): string {
  const text = record.join(" | ").slice(0, 1_000).replaceAll(/\s+/g, " ");
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
