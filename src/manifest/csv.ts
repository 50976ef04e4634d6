import { CsvError, parse } from "csv-parse/sync";
import type { Problem } from "../core/problem.js";
import { columnName, isKnown } from "./columns.js";
import { type DelimiterName, delimiters } from "./delimiters.js";
import { headerIndex, sheetOf } from "./sheet.js";
import type { Source } from "./source.js";

/** All three, and not csv-parse's own guess, which takes the first line end for the whole file's. */
const lineEnds = ["\r\n", "\n", "\r"];

/** A row longer than this is an open quote or a file that is no sheet. */
const recordCharactersMax = 1_000_000;

/**
 * Reads a sheet saved as text. A record is a spreadsheet row, so records count as people see them, however many lines
 * a quoted cell spans and however many blank rows lie between; that is why blank ones are not left to the parser.
 */
export function readCsv(file: string, text: string, named?: DelimiterName): Source {
  const hint = separatorLine(text);
  const delimiter = named ? delimiters[named] : (hint?.delimiter ?? delimiterOf(text));
  const { records, broken } = recordsOf(hint ? text.slice(hint.length) : text, delimiter);
  const source = sheetOf(file, records);
  if (!broken) return source;
  const line = broken.line + (hint ? 1 : 0);
  const problem = brokenProblem(file, { ...broken, line }, records.length + 1);
  return { ...source, problems: [problem, ...source.problems] };
}

/** Excel's own first line, `sep=;`: it names the delimiter and is no row of the sheet. */
function separatorLine(text: string): { delimiter: string; length: number } | null {
  const match = /^"?sep=([,;\t])"?(?:\r\n|\n|\r)/i.exec(text);
  return match ? { delimiter: match[1] as string, length: match[0].length } : null;
}

/** A header fits in this many characters; guessing looks no further. */
const headerCharactersMax = 65_536;

/** The delimiter under which the header names most columns that are known, and then most columns at all. */
function delimiterOf(text: string): string {
  const start = text.slice(0, headerCharactersMax);
  const scores = Object.values(delimiters).map((delimiter) => {
    const { records } = recordsOf(start, delimiter);
    const names = (records[headerIndex(records)] ?? []).map(columnName);
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
      max_record_size: recordCharactersMax,
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
