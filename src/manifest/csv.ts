import { CsvError, parse } from "csv-parse/sync";
import type { Problem } from "../core/problem.js";
import { fromSpreadsheetText } from "../core/spreadsheet-text.js";
import { columnName, isKnown } from "./columns.js";
import type { Source, SourceRow } from "./source.js";

const delimiters = [",", ";", "\t"] as const;

/** All three, and not csv-parse's own guess, which takes the first line end for the whole file's. */
const lineEnds = ["\r\n", "\n", "\r"];

/**
 * Reads a sheet saved as text. A record is a spreadsheet row, so records count as people see them, however many lines
 * a quoted cell spans and however many blank rows lie between; that is why blank ones are not left to the parser.
 */
export function readCsv(file: string, text: string): Source {
  const delimiter = delimiterOf(text);
  const { records, broken } = recordsOf(text, delimiter);
  const problems = broken ? [brokenProblem(file, broken, records.length + 1)] : [];
  const at = records.findIndex((record) => !isBlank(record));
  const header = (records[at] ?? []).map(columnName);
  const columns = header.filter((name) => name !== "");
  problems.push(...headerProblems(file, header, at + 1));
  const rows: SourceRow[] = [];
  for (const [index, record] of records.entries()) {
    if (index <= at || isBlank(record)) continue;
    const wrong = shapeProblem(file, header, record, index + 1);
    if (wrong) problems.push(wrong);
    else rows.push({ number: index + 1, file, cells: cellsOf(header, record) });
  }
  return { columns, rows, problems };
}

/** A header fits in this many characters; guessing looks no further. */
const headerCharactersMax = 65_536;

/** The delimiter under which the header names most columns that are known, and then most columns at all. */
function delimiterOf(text: string): string {
  const start = text.slice(0, headerCharactersMax);
  const scores = delimiters.map((delimiter) => {
    const names = (recordsOf(start, delimiter).records.find((record) => !isBlank(record)) ?? []).map(
      columnName,
    );
    return { delimiter, score: names.filter(isKnown).length * headerCharactersMax + names.length };
  });
  return scores.reduce((best, next) => (next.score > best.score ? next : best)).delimiter;
}

interface Broken {
  code: string;
  /** The line on which the record begins that could not be read. */
  line: number;
}

/** All records up to the first one that cannot be read. */
function recordsOf(text: string, delimiter: string): { records: string[][]; broken?: Broken } {
  const records: string[][] = [];
  let line = 1;
  try {
    parse(text, {
      delimiter,
      record_delimiter: lineEnds,
      relax_column_count: true,
      on_record: (record: string[], context) => {
        records.push(record);
        line = context.lines + 1;
        return null;
      },
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return { records, broken: { code: error.code, line } };
  }
  return { records };
}

function isBlank(record: readonly string[]): boolean {
  return record.every((cell) => cell.trim() === "");
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

/** A sheet cannot be read beyond a broken quote, so this one concerns the file and no row alone. */
function brokenProblem(file: string, { code, line }: Broken, row: number): Problem {
  const [message, got] =
    code === "CSV_QUOTE_NOT_CLOSED"
      ? [`a quote that opens in row ${row} is never closed`, "the end of the file"]
      : code === "INVALID_OPENING_QUOTE"
        ? [`a quote stands inside a cell of row ${row} that does not begin with one`, 'text like 5" plate']
        : code === "CSV_INVALID_CLOSING_QUOTE"
          ? [`row ${row} has text after a closing quote`, 'text like "5" plate"']
          : [`row ${row} cannot be read (${code})`, "a broken row"];
  return {
    place: { file, row: null, line, lineColumn: 1 },
    message,
    expected: 'a cell with quotes in quotes, and each of its own quotes doubled: "5"" plate"',
    got,
  };
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
  const text = record.join(" | ").replaceAll(/\s+/g, " ");
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
