import type { Problem } from "../../core/problem.js";
import { count } from "../../text/amounts.js";
import { fromSpreadsheetText } from "../../text/spreadsheet-cell.js";
import { shortText } from "../../text/terminal.js";
import { columnLetters, columnName, isKnown } from "../shape/columns.js";
import type { LostCell, Source, SourceBatch, SourceRow } from "../shape/source.js";
import { type HeaderRow, isBlank, isComment, isEmpty } from "./header.js";
import { asideIn } from "./headings.js";
import type { LostCells } from "./lost-cells.js";

/** The lines with which `bulkgen export --failed` names the job and the edition that its rows belong to. */
const partLine = /^#\s*(job|edition):\s*(\S.*?)\s*$/;

/**
 * Turns the records of a sheet into rows. Titles above the header, blank records and comments are skipped, and cells beyond
 * the header are problems. A record's number is its row in the sheet.
 */
export class SheetReader {
  /** Null until the header is read. */
  header: readonly string[] | null = null;
  /** The header's cells as written, by column. */
  headers: ReadonlyMap<string, string> = new Map();
  /** The row of the header, as the sheet counts; 0 until it is read. */
  headerRow = 0;
  records = 0;
  private readonly titles: string[] = [];
  /** The job and the edition whose rows these are, where lines above the header name them. */
  readonly part: Pick<Source, "partOf" | "edition"> = {};
  private readonly comments: number[] = [];
  private commentCount = 0;
  private read: SourceBatch = { rows: [], problems: [] };
  /** The header's names stand in one cell, so the rows are not split into cells either. */
  private isOneCell = false;
  /** Columns of the user's own that have one name. */
  private sameNames: readonly SameName[] = [];
  /** Every column has a distinct name that can be assigned. */
  private plain = false;

  /** `delimiter` is that of a CSV; in a workbook cells cannot be split by mistake, but may be lost. */
  constructor(
    readonly file: string,
    readonly at: HeaderRow,
    private readonly delimiter: string | null = null,
    private readonly lostCells: LostCells = new Map(),
  ) {}

  get columns(): string[] {
    return (this.header ?? []).filter((name) => name !== "");
  }

  add(record: readonly string[]): void {
    this.records++;
    const { file, header, records: number } = this;
    const lost = header === null ? undefined : this.lostOf(header, number);
    if (isBlank(record) && !Object.values(lost ?? {}).some(({ kind }) => kind !== "merged")) return;
    const [, what, name] = (header === null && partLine.exec(record[0] ?? "")) || [];
    if (name !== undefined && isBlank(record.slice(1)))
      this.part[what === "job" ? "partOf" : "edition"] = name;
    else if (isComment(record, header?.length ?? Number.POSITIVE_INFINITY)) {
      this.commentCount++;
      if (this.comments.length < numbersMax) this.comments.push(number);
    } else if (number < this.at.row) {
      if (this.titles.length <= titlesMax) this.titles.push(titleOf(record));
    } else if (header === null) this.begin(record, number);
    else if (this.at.likely === undefined && !this.isOneCell) {
      const wrong = this.shapeProblem(header, record);
      const aside = asideIn(header, record, lost, number);
      if (wrong && aside === undefined) this.read.problems.push(wrong);
      else {
        const row: SourceRow = { number, file, cells: this.cellsOf(header, record) };
        if (lost !== undefined) row.lost = lost;
        if (aside !== undefined) row.aside = aside;
        if (wrong !== null) row.misfit = wrong;
        this.read.rows.push(row);
      }
    }
  }

  /** The rows and problems since the last call. */
  take(): SourceBatch {
    const { read } = this;
    this.read = { rows: [], problems: [] };
    return read;
  }

  /** Notes about titles, columns of one name and comments, once everything is read. */
  notes(): string[] {
    return [
      ...titleNotes(this.titles, this.at.row),
      ...this.sameNames.map(sameNameNote),
      ...commentNotes(this.comments, this.commentCount),
    ];
  }

  /** The problem if the header is not where --header-row says, or seems to be further down. */
  missingHeader(): Problem[] {
    const { file, header, records, at, delimiter } = this;
    const place = { file, row: null };
    if (header === null) {
      if (at.row <= 1) return [];
      const message = `row ${at.row} cannot be the header`;
      const got = records < at.row ? `${count(records, "row")} in all` : "nothing there";
      return [{ place, message, expected: "a row with the names of the columns in --header-row", got }];
    }
    if (this.isOneCell) {
      const message = "the whole header is in one cell";
      const separated = delimiter === null ? "" : ", separated by commas, semicolons or tabs";
      const expected = `each name in a cell of its own${separated} (in Excel: select the column, then Data > Text to Columns)`;
      return [{ place, message, expected, got: quotedList(header) }];
    }
    if (at.likely === undefined) return [];
    const { row, names } = at.likely;
    const message = `the header seems to be in row ${row} (${quotedList(names)}), below a title`;
    const expected = `--header-row ${row}, or the rows above it removed`;
    return [{ place, message, expected, got: `a title in row ${at.row}: ${quotedList(header)}` }];
  }

  private begin(record: readonly string[], number: number): void {
    const header = record.map(columnName);
    this.sameNames = sameNamesIn(header);
    for (const { columns } of this.sameNames) for (const { index, called } of columns) header[index] = called;
    this.header = header;
    this.headerRow = number;
    this.headers = new Map(record.map((written, index) => [header[index] ?? "", written.trim()]));
    this.plain = !header.includes("") && !header.includes("__proto__");
    this.isOneCell = isInOneCell(this.columns);
    this.read.problems.push(...headerProblems(this.file, header, number));
  }

  /** Empty cells beyond the header are ignored: spreadsheets write them. */
  private shapeProblem(header: readonly string[], record: readonly string[]): Problem | null {
    const stray = record.findLastIndex((cell, index) => (header[index] ?? "") === "" && !isEmpty(cell));
    if (record.length >= header.length && stray < 0) return null;
    const { file, delimiter, records: row } = this;
    const id = record[header.indexOf("id")]?.trim();
    const place = { file, row, ...(id ? { id } : {}) };
    const named = header.findLastIndex((name) => name !== "") + 1;
    if (stray < 0) {
      const message = "the row has too few cells";
      const expected = `${count(header.length, "cell")}, as in the header`;
      return { place, message, expected, got: `${count(record.length, "cell")}: ${excerpt(record)}` };
    }
    const message = "a cell has no column in the header";
    if (stray < named || delimiter === null) {
      const expected = "a name in the header above every cell";
      const got = `nothing above ${quotedList([record[stray] ?? ""])} in column ${columnLetters(stray + 1)}`;
      return { place, message, expected, got };
    }
    return {
      place,
      message,
      expected: `${count(named, "cell")}, as in the header (put quotes around a text that contains ${splitBy[delimiter]})`,
      got: `${count(stray + 1, "cell")}: ${excerpt(record.slice(0, stray + 1))}`,
    };
  }

  private lostOf(header: readonly string[], row: number): Record<string, LostCell> | undefined {
    const lost = this.lostCells.get(row);
    if (lost === undefined) return undefined;
    const named = [...lost].map(([column, cell]) => [header[column - 1] ?? "", cell] as const);
    return Object.fromEntries(named.filter(([name]) => name !== ""));
  }

  /** Cells that are not empty. */
  private cellsOf(header: readonly string[], record: readonly string[]): Record<string, string> {
    // Assigning to a column named `__proto__` would lose it.
    if (!this.plain) return Object.fromEntries(filled(header, record));
    const cells: Record<string, string> = {};
    for (let index = 0; index < header.length; index++) {
      const cell = record[index] ?? "";
      if (!isEmpty(cell)) cells[header[index] as string] = cellText(cell);
    }
    return cells;
  }
}

const splitBy: Readonly<Record<string, string>> = { ",": "a comma", ";": "a semicolon", "\t": "a tab" };

/** A formula that is only a text, such as `="007"`: it keeps the zeros of a CSV in a spreadsheet, which shows the text. */
const onlyText = /^="([^"]+)"$/;

function cellText(cell: string): string {
  return cell.startsWith("=") ? (onlyText.exec(cell.trim())?.[1] ?? cell) : fromSpreadsheetText(cell);
}

function filled(header: readonly string[], record: readonly string[]): [string, string][] {
  return header.flatMap((name, index): [string, string][] => {
    const cell = record[index] ?? "";
    return name === "" || isEmpty(cell) ? [] : [[name, cellText(cell)]];
  });
}

const titlesMax = 3;

function titleOf(record: readonly string[]): string {
  return record.find((cell) => !isEmpty(cell)) ?? "";
}

function titleNotes(titles: readonly string[], header: number): string[] {
  if (titles.length === 0) return [];
  const rows = header === 2 ? "Row 1" : `Rows 1-${header - 1}`;
  const were = header === 2 ? "was" : "were";
  return [`${rows} above the header in row ${header} ${were} skipped: ${quotedList(titles)}`];
}

/** The first texts, in quotes and short. */
function quotedList(texts: readonly string[]): string {
  const shown = texts.filter((text) => text !== "").map((text) => `"${excerpt([text.trim()])}"`);
  return [...shown.slice(0, titlesMax), ...(shown.length > titlesMax ? ["…"] : [])].join(", ");
}

/** A spreadsheet that expects another delimiter puts each row into one cell, and may save it so. */
function isInOneCell([name = "", ...others]: readonly string[]): boolean {
  const parts = others.length > 0 ? [] : name.split(/[,;\t|]/);
  return parts.map(columnName).filter(isKnown).length > 1;
}

const numbersMax = 5;

function commentNotes(rows: readonly number[], count: number): string[] {
  if (count === 0) return [];
  const more = count > rows.length ? ` and ${count - rows.length} more` : "";
  return [
    `${count === 1 ? "row" : "rows"} ${rows.join(", ")}${more} begin${count === 1 ? "s" : ""} with # and ${count === 1 ? "is a comment" : "are comments"}`,
  ];
}

/** Columns of one name: their places, counted from 0, and what tells them apart. */
interface SameName {
  name: string;
  columns: { index: number; called: string }[];
}

/**
 * Of the columns that bulkgen does not know, those of one name. `Notes` twice is `Notes (1)` and `Notes (2)`: neither
 * hides the other, both return in the export, and a template or a filter has to say which one it means.
 */
function sameNamesIn(names: readonly string[]): SameName[] {
  const places = new Map<string, number[]>();
  for (const [index, name] of names.entries())
    if (name !== "" && !isKnown(name)) places.set(name, [...(places.get(name) ?? []), index]);
  const taken = new Set(names);
  return [...places].flatMap(([name, indexes]) => {
    if (indexes.length === 1) return [];
    let number = 0;
    const columns = indexes.map((index) => {
      do number++;
      while (taken.has(`${name} (${number})`));
      return { index, called: `${name} (${number})` };
    });
    return [{ name, columns }];
  });
}

function sameNameNote({ name, columns }: SameName): string {
  const letters = columns.map(({ index }) => columnLetters(index + 1));
  const called = columns.map(({ called }) => `"${called}"`);
  return `columns ${listed(letters)} are named "${name}"; here they are ${listed(called)}`;
}

function listed(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
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
        got: `columns ${columnLetters(earlier + 1)} and ${columnLetters(index + 1)}`,
      });
    }
    seen.set(name, index);
  }
  return problems;
}

const excerptCharactersMax = 80;

function excerpt(record: readonly string[]): string {
  return shortText(record.join(" | ").slice(0, 1_000).replaceAll(/\s+/g, " "), excerptCharactersMax);
}
