import { finished } from "node:stream/promises";
import { CsvError, type Options, Parser } from "csv-parse";
import { parse } from "csv-parse/sync";
import type { Problem } from "../../core/problem.js";
import { columnName, isKnown } from "../shape/columns.js";
import type { Source, SourceBatch } from "../shape/source.js";
import { type DelimiterName, delimiters } from "./delimiters.js";
import { headerIndex, Sheet } from "./sheet.js";

/** All three, and not csv-parse's own guess, which takes the first line end for the whole file's. */
const lineEnds = ["\r\n", "\n", "\r"];

/** A row longer than this is an open quote or a file that is no sheet. */
const recordCharactersMax = 1_000_000;

/**
 * Reads a sheet saved as text, piece by piece. A record is a spreadsheet row, so records count as people see them,
 * however many lines a quoted cell spans and however many blank rows lie between; that is why blank ones are not left to
 * the parser. Nothing is read before the header is known.
 */
export async function openCsv(file: string, text: CsvText, named?: DelimiterName): Promise<Source> {
  const hint = separatorLine(text.start);
  const delimiter = named ? delimiters[named] : (hint?.delimiter ?? delimiterOf(text.start));
  const sheet = new Sheet(file);
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

/** A text as UTF-8, and how it begins. */
export interface CsvText {
  pieces(): AsyncIterable<Uint8Array>;
  start: string;
  /** It has carriage returns, or may have. */
  returns: boolean;
}

interface Reading extends CsvText {
  delimiter: string;
  /** The line at which the sheet begins. */
  from: number;
}

/** The rows of each piece, up to the first record that cannot be read. */
async function* batchesOf(sheet: Sheet, text: Reading): AsyncGenerator<SourceBatch> {
  const { pieces, returns, delimiter, from } = text;
  // Only those line ends that the file has: the parser looks for each of them at every byte.
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

/** The parser with its records handed over at once, also those before one that cannot be read. */
class Records extends Parser {
  /** The line on which the next record begins. */
  line: number;

  constructor(
    options: Options & { from_line: number },
    private readonly add: (record: string[]) => void,
  ) {
    super(options);
    this.line = options.from_line;
    // Whoever writes is told of an error; as an event nobody needs it.
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

/** Excel's own first line, `sep=;`: it names the delimiter and is no row of the sheet. */
function separatorLine(text: string): { delimiter: string } | null {
  const match = /^"?sep=([,;\t])"?(?:\r\n|\n|\r)/i.exec(text);
  return match ? { delimiter: match[1] as string } : null;
}

/** A header fits in this many characters; guessing looks no further. */
const headerCharactersMax = 65_536;

/** The delimiter under which the header names most columns that are known, and then most columns at all. */
function delimiterOf(text: string): string {
  const start = text.slice(0, headerCharactersMax);
  const scores = Object.values(delimiters).map((delimiter) => {
    const records = recordsIn(start, delimiter);
    const names = (records[headerIndex(records)] ?? []).map(columnName);
    return { delimiter, score: names.filter(isKnown).length * headerCharactersMax + names.length };
  });
  return scores.reduce((best, next) => (next.score > best.score ? next : best)).delimiter;
}

/** As many records as can be read of how a sheet begins. */
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
  /** The line on which the record begins that could not be read. */
  line: number;
}

/** A sheet cannot be read beyond a broken quote, so this one concerns the file and no row alone. */
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
        ? [`a quote stands inside a cell of row ${row} that does not begin with one`, 'text like 5" plate']
        : code === "CSV_INVALID_CLOSING_QUOTE"
          ? [`row ${row} has text after a closing quote`, 'text like "5" plate"']
          : [`row ${row} cannot be read (${code})`, "a broken row"];
  return {
    place,
    message,
    expected: 'a cell with quotes in quotes, and each of its own quotes doubled: "5"" plate"',
    got,
  };
}
