import { finished } from "node:stream/promises";
import { CsvError, type Options, Parser } from "csv-parse";
import { parse } from "csv-parse/sync";
import type { Problem } from "../../core/problem.js";
import { fromSpreadsheetText } from "../../text/spreadsheet-cell.js";
import { columnName, isKnown } from "../shape/columns.js";
import type { Source, SourceBatch } from "../shape/source.js";

/** The delimiters of cells. */
export const delimiters = { comma: ",", semicolon: ";", tab: "\t" } as const;
export type DelimiterName = keyof typeof delimiters;

/** All three line ends: csv-parse's guess takes the first one for the whole file. */
const lineEnds = ["\r\n", "\n", "\r"];

/** A longer row is an unclosed quote, or the file is not a sheet. */
const recordCharactersMax = 1_000_000;

/**
 * Reads a sheet saved as text, piece by piece. A record is a row as a spreadsheet counts it: a quoted cell may span lines,
 * and blank rows count, so the parser must not skip them. Rows are read only once the header is known.
 */
export async function openCsv(file: string, text: CsvText, named?: DelimiterName): Promise<Source> {
  const hint = separatorLine(text.start);
  const delimiter = named ? delimiters[named] : (hint?.delimiter ?? delimiterOf(text.start));
  const sheet = new SheetReader(file);
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
  return { columns: sheet.columns, problems: [], notes: [], batches };
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

const grammar = { relax_column_count: true, max_record_size: recordCharactersMax } as const;

/** The parser, which returns its records at once, including those before a malformed one. */
class Records extends Parser {
  /** The line on which the next record begins. */
  line: number;

  constructor(
    options: Options & { from_line: number },
    private readonly add: (record: string[]) => void,
  ) {
    super(options);
    this.line = options.from_line;
    // `write` reports the error; the event is not needed.
    this.on("error", () => {});
  }

  override push(record: string[] | null): boolean {
    if (record === null) return super.push(null);
    this.line = this.info.lines + 1;
    this.add(record);
    return true;
  }

  async feed(piece: Uint8Array): Promise<void> {
    await new Promise<void>((done, failed) => this.write(piece, (error) => (error ? failed(error) : done())));
  }

  async finish(): Promise<void> {
    this.resume();
    await finished(this.end());
  }
}

/** Excel's own first line, `sep=;`: it names the delimiter and is not a row. */
function separatorLine(text: string): { delimiter: string } | null {
  const match = /^"?sep=([,;\t])"?(?:\r\n|\n|\r)/i.exec(text);
  return match ? { delimiter: match[1] as string } : null;
}

/** The characters in which the delimiter is guessed. */
const headerCharactersMax = 65_536;

/** The delimiter with which the header has the most known columns, then the most columns. */
function delimiterOf(text: string): string {
  const start = text.slice(0, headerCharactersMax);
  const scores = Object.values(delimiters).map((delimiter) => {
    const records = recordsIn(start, delimiter);
    const names = (records[headerIndex(records)] ?? []).map(columnName);
    return { delimiter, score: names.filter(isKnown).length * headerCharactersMax + names.length };
  });
  return scores.reduce((best, next) => (next.score > best.score ? next : best)).delimiter;
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
      : code === "INVALID_OPENING_QUOTE"
        ? [`a cell of row ${row} contains a quote but does not begin with one`, 'text like 5" plate']
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
 * Turns the records of a sheet into rows. The first record that is not blank is the header. Blank records and comments are
 * skipped, and cells beyond the header are problems. A record's number is its row in the sheet.
 */
export class SheetReader {
  /** Null until the header is found. */
  header: readonly string[] | null = null;
  records = 0;
  private readonly comments: number[] = [];
  private commentCount = 0;
  private read: SourceBatch = { rows: [], problems: [] };
  /** Every column has a distinct name that can be assigned. */
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

  /** The rows and problems since the last call. */
  take(): SourceBatch {
    const { read } = this;
    this.read = { rows: [], problems: [] };
    return read;
  }

  /** A note about comments, once everything is read. */
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

/** Empty cells beyond the header are ignored: spreadsheets write them. */
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
