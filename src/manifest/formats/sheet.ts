import type { Problem } from "../../core/problem.js";
import { fromSpreadsheetText } from "../../text/spreadsheet-cell.js";
import { columnName } from "../shape/columns.js";
import type { SourceBatch } from "../shape/source.js";

/**
 * Records of cells, as a sheet has them, become rows: the first one that says something is the header, blank ones and
 * comments are passed over, and what does not fit under the header is told. A record's number is its row in the sheet.
 */
export class Sheet {
  /** Null until the header was found. */
  header: readonly string[] | null = null;
  records = 0;
  private readonly comments: number[] = [];
  private commentCount = 0;
  private read: SourceBatch = { rows: [], problems: [] };
  /** Every column has a name of its own that an assignment can take. */
  private plain = false;

  constructor(readonly file: string) {}

  get columns(): string[] {
    return (this.header ?? []).filter((name) => name !== "");
  }

  add(record: readonly string[]): void {
    this.records++;
    const { file, header, records: number } = this;
    if (isBlank(record)) return;
    if (isComment(record, header?.length ?? Number.POSITIVE_INFINITY)) {
      this.commentCount++;
      if (this.comments.length < numbersMax) this.comments.push(number);
    } else if (header === null) this.begin(record.map(columnName), number);
    else {
      const wrong = shapeProblem(file, header, record, number);
      if (wrong) this.read.problems.push(wrong);
      else this.read.rows.push({ number, file, cells: this.cellsOf(header, record) });
    }
  }

  /** What was read since the last time. */
  take(): SourceBatch {
    const { read } = this;
    this.read = { rows: [], problems: [] };
    return read;
  }

  /** On comments, once everything is read. */
  notes(): string[] {
    return commentNotes(this.comments, this.commentCount);
  }

  private begin(header: readonly string[], number: number): void {
    this.header = header;
    this.plain = !header.includes("") && !header.includes("__proto__");
    this.read.problems.push(...headerProblems(this.file, header, number));
  }

  /** Cells that are not empty. */
  private cellsOf(header: readonly string[], record: readonly string[]): Record<string, string> {
    // Assigning to a column named `__proto__` would lose it.
    if (!this.plain) return Object.fromEntries(filled(header, record));
    const cells: Record<string, string> = {};
    for (let index = 0; index < header.length; index++) {
      const cell = record[index] as string;
      if (!isEmpty(cell)) cells[header[index] as string] = fromSpreadsheetText(cell);
    }
    return cells;
  }
}

function filled(header: readonly string[], record: readonly string[]): [string, string][] {
  return header.flatMap((name, index): [string, string][] => {
    const cell = record[index] ?? "";
    return name === "" || isEmpty(cell) ? [] : [[name, fromSpreadsheetText(cell)]];
  });
}

/** The index of the header among records, or -1. */
export function headerIndex(records: readonly (readonly string[])[]): number {
  return records.findIndex((record) => !isBlank(record) && !isComment(record, Number.POSITIVE_INFINITY));
}

function isBlank(record: readonly string[]): boolean {
  return record.every(isEmpty);
}

/** Nearly every cell that says something begins with a letter or a digit. */
function isEmpty(cell: string): boolean {
  return cell === "" || (!(cell.charCodeAt(0) > 32 && cell.charCodeAt(0) < 127) && cell.trim() === "");
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

function commentNotes(rows: readonly number[], count: number): string[] {
  if (count === 0) return [];
  const more = count > rows.length ? ` and ${count - rows.length} more` : "";
  return [
    `${count === 1 ? "row" : "rows"} ${rows.join(", ")}${more} begin${count === 1 ? "s" : ""} with # and ${count === 1 ? "is a comment" : "are comments"}`,
  ];
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
  const stray = record.some((cell, index) => (header[index] ?? "") === "" && !isEmpty(cell));
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
