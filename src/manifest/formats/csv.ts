import { finished } from "node:stream/promises";
import { CsvError, type Options, Parser } from "csv-parse";
import { parse } from "csv-parse/sync";
import type { Problem } from "../../core/problem.js";
import { fromSpreadsheetText } from "../../text/spreadsheet-cell.js";
import { shortText } from "../../text/terminal.js";
import { columnName, isKnown } from "../shape/columns.js";
import { noForm, type Source, type SourceBatch } from "../shape/source.js";

/** The delimiters of cells. */
export const delimiters = { comma: ",", semicolon: ";", tab: "\t" } as const;
export type DelimiterName = keyof typeof delimiters;
const delimiterNames: Readonly<Record<string, string>> = { ",": "comma", ";": "semicolon" };

/** All three line ends: csv-parse's guess takes the first one for the whole file. */
const lineEnds = ["\r\n", "\n", "\r"];

/** A longer row is an unclosed quote, or the file is not a sheet. */
const recordCharactersMax = 1_000_000;

/**
 * Reads a sheet saved as text, piece by piece. A record is a row as a spreadsheet counts it: a quoted cell may span lines,
 * and blank rows count, so the parser must not skip them. Rows are read only once the header is known.
 */
export async function openCsv(file: string, text: CsvText, options: CsvOptions = {}): Promise<Source> {
  const hint = separatorLine(text.start);
  const named = options.delimiter ? delimiters[options.delimiter] : hint?.delimiter;
  const { delimiter, header } = formOf(text.start.slice(hint?.length ?? 0), named, options.headerRow);
  const sheet = new SheetReader(file, header, delimiter);
  const read = batchesOf(sheet, { ...text, delimiter, from: hint ? 2 : 1 })[Symbol.asyncIterator]();
  const first: SourceBatch[] = [];
  while (sheet.header === null) {
    const { value, done } = await read.next();
    if (done) break;
    first.push(value);
  }
  async function* batches() {
    yield* first;
    yield* { [Symbol.asyncIterator]: () => read };
    yield { rows: [], problems: [], notes: sheet.notes() };
  }
  const form = { ...noForm, delimiter, headers: sheet.headers };
  return { columns: sheet.columns, problems: sheet.missingHeader(), notes: [], batches, form };
}

export interface CsvOptions {
  /** Guessed by default. */
  delimiter?: DelimiterName;
  /** The row of the header, as the sheet counts; found by default. */
  headerRow?: number;
}

/** A text as UTF-8, and its beginning. */
export interface CsvText {
  pieces(): AsyncIterable<Uint8Array>;
  start: string;
  /** It has carriage returns, or may have. */
  returns: boolean;
}

interface Reading extends CsvText {
  delimiter: string;
  /** The line on which the sheet begins. */
  from: number;
}

/** The rows of each piece, up to the first malformed record. */
async function* batchesOf(sheet: SheetReader, text: Reading): AsyncGenerator<SourceBatch> {
  const { pieces, returns, delimiter, from } = text;
  // Only the line ends that the file has: the parser compares each of them at every byte.
  const parser = new Records(
    { ...grammar, delimiter, record_delimiter: returns ? lineEnds : ["\n"], from_line: from },
    (record) => sheet.add(record),
  );
  try {
    for await (const piece of pieces()) {
      await parser.feed(piece);
      yield sheet.take();
    }
    await parser.finish();
    yield sheet.take();
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const broken = { code: error.code, line: parser.line };
    const { rows, problems } = sheet.take();
    const problem = brokenProblem(sheet.file, broken, sheet.records + 1);
    yield { rows, problems: [problem, ...problems] };
  }
}

/** A quote inside a cell that does not begin with one is text, as in every spreadsheet: `Cup "Nora"`. */
const grammar = {
  bom: true,
  relax_column_count: true,
  relax_quotes: true,
  max_record_size: recordCharactersMax,
} as const;

/** The parser, which returns its records at once, including those before a malformed one. */
class Records extends Parser {
  /** The line on which the next record begins. */
  line: number;
  /** The option that allows quotes inside a cell also allows text after a closing quote, which is a mistake. */
  private textAfterQuote = false;

  constructor(
    options: Options & { from_line: number },
    private readonly add: (record: string[]) => void,
  ) {
    super(options);
    this.line = options.from_line;
    // `write` reports the error; the event is not needed.
    this.on("error", () => {});
    const { state } = this as unknown as { state: { field: { prepend(quote: Buffer): void } } };
    // Only on text after a closing quote does the parser put that quote back.
    state.field.prepend = () => {
      this.textAfterQuote = true;
    };
  }

  override push(record: string[] | null): boolean {
    if (record === null) return super.push(null);
    if (this.textAfterQuote) return true;
    this.line = this.info.lines + 1;
    this.add(record);
    return true;
  }

  async feed(piece: Uint8Array): Promise<void> {
    await new Promise<void>((done, failed) => this.write(piece, (error) => (error ? failed(error) : done())));
    this.checkQuotes();
  }

  async finish(): Promise<void> {
    this.resume();
    await finished(this.end());
    this.checkQuotes();
  }

  private checkQuotes(): void {
    if (this.textAfterQuote) throw new CsvError("CSV_INVALID_CLOSING_QUOTE", "text after a closing quote");
  }
}

/** Excel's own first line, `sep=;`: it names the delimiter and is not a row. */
function separatorLine(text: string): { delimiter: string; length: number } | null {
  const match = /^"?sep=([,;\t])"?(?:\r\n|\n|\r)/i.exec(text);
  return match ? { delimiter: match[1] as string, length: match[0].length } : null;
}

/** The characters in which delimiter and header are looked for. */
const headerCharactersMax = 65_536;

interface Form {
  delimiter: string;
  header: HeaderRow;
}

/** The delimiter, if it is not named: the one with which the header has the most known columns, then the most columns. */
function formOf(text: string, named: string | undefined, headerRow: number | undefined): Form {
  const start = text.slice(0, headerCharactersMax);
  const forms = (named === undefined ? Object.values(delimiters) : [named]).map((delimiter) => {
    const records = recordsIn(start, delimiter);
    const header = headerRow === undefined ? headerOf(records) : { row: headerRow };
    const names = (records[header.row - 1] ?? []).map(columnName);
    const score = names.filter(isKnown).length * headerCharactersMax + names.length;
    return { delimiter, header, score };
  });
  return forms.reduce((best, next) => (next.score > best.score ? next : best));
}

/** The first records of a sheet, as far as they can be read. */
function recordsIn(start: string, delimiter: string): string[][] {
  const records: string[][] = [];
  try {
    parse(start, {
      ...grammar,
      delimiter,
      record_delimiter: lineEnds,
      on_record: (record: string[]) => {
        records.push(record);
        return null;
      },
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
  }
  return records;
}

interface Broken {
  code: string;
  /** The line on which the malformed record begins. */
  line: number;
}

/** A sheet cannot be read beyond a broken quote, so this problem concerns the whole file. */
function brokenProblem(file: string, { code, line }: Broken, row: number): Problem {
  const place = { file, row: null, line, lineColumn: 1 };
  if (code === "CSV_MAX_RECORD_SIZE") {
    return {
      place,
      message: `row ${row} is longer than any row should be; perhaps a quote in it is never closed`,
      expected: `at most ${recordCharactersMax} characters`,
      got: "more",
    };
  }
  const [message, got] =
    code === "CSV_QUOTE_NOT_CLOSED"
      ? [`a quote that opens in row ${row} is never closed`, "the end of the file"]
      : code === "CSV_INVALID_CLOSING_QUOTE"
        ? [`row ${row} has text after a closing quote`, 'text like "5" plate"']
        : [`row ${row} cannot be read (${code})`, "a broken row"];
  return {
    place,
    message,
    expected: 'the cell in quotes, with every quote inside it doubled: "5"" plate"',
    got,
  };
}

/**
 * Turns the records of a sheet into rows. Titles above the header, blank records and comments are skipped, and cells beyond
 * the header are problems. A record's number is its row in the sheet.
 */
export class SheetReader {
  /** Null until the header is read. */
  header: readonly string[] | null = null;
  /** The header's cells as written, by column. */
  headers: ReadonlyMap<string, string> = new Map();
  records = 0;
  private readonly titles: string[] = [];
  private readonly comments: number[] = [];
  private commentCount = 0;
  private read: SourceBatch = { rows: [], problems: [] };
  /** Every column has a distinct name that can be assigned. */
  private plain = false;

  /** `delimiter` is that of a CSV; in a workbook cells cannot be split by mistake. */
  constructor(
    readonly file: string,
    readonly at: HeaderRow,
    private readonly delimiter: string | null = null,
  ) {}

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
    } else if (number < this.at.row) {
      if (this.titles.length <= titlesMax) this.titles.push(titleOf(record));
    } else if (header === null) this.begin(record, number);
    else if (this.at.likely === undefined) {
      const wrong = this.shapeProblem(header, record);
      if (wrong) this.read.problems.push(wrong);
      else this.read.rows.push({ number, file, cells: this.cellsOf(header, record) });
    }
  }

  /** The rows and problems since the last call. */
  take(): SourceBatch {
    const { read } = this;
    this.read = { rows: [], problems: [] };
    return read;
  }

  /** Notes about titles and comments, once everything is read. */
  notes(): string[] {
    return [...titleNotes(this.titles, this.at.row), ...commentNotes(this.comments, this.commentCount)];
  }

  /** Why there is no header, if there is none although one was named or seems to be further down. */
  missingHeader(): Problem[] {
    const { file, header, records, at } = this;
    const place = { file, row: null };
    if (header === null) {
      if (at.row <= 1) return [];
      const message = `row ${at.row} cannot be the header`;
      const got =
        records < at.row ? `${records === 1 ? "1 row" : `${records} rows`} in all` : "nothing there";
      return [{ place, message, expected: "a row with the names of the columns in --header-row", got }];
    }
    if (at.likely === undefined) return [];
    const { row, names } = at.likely;
    const message = `the header seems to be in row ${row} (${quotedList(names)}), below a title`;
    const expected = `--header-row ${row}, or the rows above it removed`;
    return [{ place, message, expected, got: `a title in row ${at.row}: ${quotedList(header)}` }];
  }

  private begin(record: readonly string[], number: number): void {
    const header = record.map(columnName);
    this.header = header;
    this.headers = new Map(record.map((written, index) => [header[index] ?? "", written.trim()]));
    this.plain = !header.includes("") && !header.includes("__proto__");
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
      const expected = `${count(header.length)}, as in the header`;
      return { place, message, expected, got: `${count(record.length)}: ${excerpt(record)}` };
    }
    const message = "a cell has no column in the header";
    if (stray < named || delimiter === null) {
      const expected = "a name in the header above every cell";
      const got = `nothing above ${quotedList([record[stray] ?? ""])} in column ${stray + 1}`;
      return { place, message, expected, got };
    }
    const split = delimiter === "\t" ? "a tab" : `a ${delimiterNames[delimiter]}`;
    return {
      place,
      message,
      expected: `${count(named)}, as in the header (put quotes around a text that contains ${split})`,
      got: `${count(stray + 1)}: ${excerpt(record.slice(0, stray + 1))}`,
    };
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

/** The row of a header, counted from 1. */
export interface HeaderRow {
  row: number;
  /** The first row is read as the header, but this one looks more like it. */
  likely?: { row: number; names: readonly string[] };
}

/** The rows in which a header is looked for below titles. */
const titleRowsMax = 30;

/**
 * Finds the header: the first row that is neither blank nor a comment, unless it has no known name and one below it does.
 * That one is below titles: it has two known names, nothing else, or more cells than any row above it.
 */
export function headerOf(records: readonly (readonly string[])[]): HeaderRow {
  const filledRows = records.slice(0, titleRowsMax).flatMap((record, index) => {
    if (isBlank(record) || isComment(record, Number.POSITIVE_INFINITY)) return [];
    const names = record.filter((cell) => !isEmpty(cell)).map(columnName);
    return { row: index + 1, width: record.length, names, known: names.filter(isKnown) };
  });
  const [first, ...others] = filledRows;
  if (first === undefined) return { row: 1 };
  if (first.known.length > 0) return first;
  let widest = first;
  const possible: typeof others = [];
  for (const each of others) {
    const { names, known } = each;
    const alone = known.length === names.length || names.length > widest.names.length;
    if (known.length > 1 || (known.length === 1 && alone)) possible.push(each);
    if (names.length > widest.names.length) widest = each;
  }
  const isMade = ({ known }: typeof first) => known.includes("model") || known.includes("prompt");
  const most = Math.max(...possible.map(({ known }) => known.length));
  const found = possible.find(isMade) ?? possible.find(({ known }) => known.length === most);
  if (found) return { row: found.row };
  // A spreadsheet saves a title with empty cells beside it, up to the width of the sheet.
  const isTitle = first.width >= widest.width && first.names.length * 2 <= widest.names.length;
  return isTitle ? { row: first.row, likely: widest } : { row: first.row };
}

function isBlank(record: readonly string[]): boolean {
  return record.every(isEmpty);
}

/** A fast path: nearly every non-empty cell begins with a letter or a digit. */
function isEmpty(cell: string): boolean {
  return cell === "" || (!(cell.charCodeAt(0) > 32 && cell.charCodeAt(0) < 127) && cell.trim() === "");
}

/**
 * A comment begins with `#` and has the row to itself. If commas split it into cells, it is recognised by `# ` and by not
 * fitting under the header. In a sheet of one column only `# ` begins a comment: `#sunset` is a prompt.
 */
function isComment(record: readonly string[], columns: number): boolean {
  const first = record[0]?.trimStart() ?? "";
  if (!first.startsWith("#")) return false;
  const spaced = /^#(\s|#|$)/.test(first);
  if (isBlank(record.slice(1)) && columns > 1) return true;
  return spaced && (columns === 1 ? record.length === 1 : record.length !== columns);
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

function count(cells: number): string {
  return cells === 1 ? "1 cell" : `${cells} cells`;
}

const excerptCharactersMax = 80;

function excerpt(record: readonly string[]): string {
  return shortText(record.join(" | ").slice(0, 1_000).replaceAll(/\s+/g, " "), excerptCharactersMax);
}
