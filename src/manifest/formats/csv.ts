import { finished } from "node:stream/promises";
import { CsvError, type Options, Parser } from "csv-parse";
import { parse } from "csv-parse/sync";
import type { Problem } from "../../core/problem.js";
import { columnName, isKnown } from "../shape/columns.js";
import { noForm, type Source, type SourceBatch } from "../shape/source.js";
import { type HeaderRow, headerOf } from "./header.js";
import { SheetReader } from "./sheet.js";

/** The delimiters of cells. */
const delimiters = { comma: ",", semicolon: ";", tab: "\t" } as const;
type DelimiterName = keyof typeof delimiters;

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
  const reading = { ...text, delimiter, from: hint ? 2 : 1, each: options.each };
  const read = batchesOf(sheet, reading)[Symbol.asyncIterator]();
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
  const form = { ...noForm, delimiter, headers: sheet.headers, headerRow: sheet.headerRow };
  return { columns: sheet.columns, problems: sheet.missingHeader(), notes: [], batches, form, ...sheet.part };
}

export interface CsvOptions {
  /** Guessed by default. */
  delimiter?: DelimiterName;
  /** The row of the header, as the sheet counts; found by default. */
  headerRow?: number;
  /** Is given each record as it is read, also those that are no rows, such as titles, comments and blank ones. */
  each?: ((record: readonly string[]) => void) | undefined;
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
  each: CsvOptions["each"];
}

/** The rows of each piece, up to the first malformed record. */
async function* batchesOf(sheet: SheetReader, text: Reading): AsyncGenerator<SourceBatch> {
  const { pieces, returns, delimiter, from, each } = text;
  // Only the line ends that the file has: the parser compares each of them at every byte.
  const parser = new Records(
    { ...grammar, delimiter, record_delimiter: returns ? lineEnds : ["\n"], from_line: from },
    (record) => {
      each?.(record);
      sheet.add(record);
    },
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

/**
 * A quote inside a cell that does not begin with one is text, as in every spreadsheet: `Cup "Nora"`. Blanks around a cell
 * are not part of it, so a quote after one opens it: `a, pix, "a blue cup"`.
 */
const grammar = {
  bom: true,
  trim: true,
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

/**
 * The delimiter, if it is not named: the one with which the header has the most known columns, then the most columns. A
 * comma before a space is part of a name, as in `Price, net`.
 */
function formOf(text: string, named: string | undefined, headerRow: number | undefined): Form {
  const start = text.slice(0, headerCharactersMax);
  const forms = (named === undefined ? Object.values(delimiters) : [named]).map((delimiter) => {
    const records = recordsIn(start, delimiter);
    const header = headerRow === undefined ? headerOf(records) : { row: headerRow };
    const names = records[header.row - 1] ?? [];
    const known = names.map(columnName).filter(isKnown);
    const written = recordsIn(start, delimiter, { trim: false })[header.row - 1] ?? [];
    const score = known.length * headerCharactersMax + written.filter((name) => !name.startsWith(" ")).length;
    return { delimiter, header, score };
  });
  return forms.reduce((best, next) => (next.score > best.score ? next : best));
}

/** The first records of a sheet, as far as they can be read. */
function recordsIn(start: string, delimiter: string, { trim = true } = {}): string[][] {
  const records: string[][] = [];
  try {
    parse(start, {
      ...grammar,
      trim,
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

/** The second is that of text after a blank. */
const afterQuote = ["CSV_INVALID_CLOSING_QUOTE", "CSV_NON_TRIMABLE_CHAR_AFTER_CLOSING_QUOTE"];

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
      : afterQuote.includes(code)
        ? [`row ${row} has text after a closing quote`, 'text like "5" plate"']
        : [`row ${row} cannot be read (${code})`, "a broken row"];
  return {
    place,
    message,
    expected: 'the cell in quotes, with every quote inside it doubled: "5"" plate"',
    got,
  };
}
