import { dirname, extname, join } from "node:path";
import type { Problem } from "../core/problem.js";
import { readBytes, standardInput } from "./bytes.js";
import { readCsv } from "./csv.js";
import type { DelimiterName } from "./delimiters.js";
import { readDocument, readLines } from "./document-rows.js";
import { type Source, unreadSource } from "./source.js";
import { decodedText } from "./text.js";
import { isWorkbook, readWorkbook } from "./workbook.js";

export interface SourceOptions {
  /** Standard input, for the manifest `-`. */
  stdin?: AsyncIterable<Uint8Array>;
  /** The delimiter of a CSV, where it is not to be guessed. */
  delimiter?: DelimiterName;
  /** The sheet of a workbook; otherwise its first. */
  sheet?: string;
}

/** Reads a manifest, of whatever format, and the file that it names for its rows. Throws for nothing that a file can hold. */
export async function readSource(path: string, options: SourceOptions): Promise<Source> {
  const read = await readBytes(path, options.stdin);
  if ("problem" in read) return unreadSource(read.problem);
  const { source, rowsFile } = await sourceOf(path, read.bytes, options);
  if (rowsFile === undefined) return source;
  const file = join(path === standardInput ? "." : dirname(path), rowsFile);
  const rows = await readRows(file, options);
  return {
    ...source,
    columns: rows.columns,
    rows: rows.rows,
    problems: [...source.problems, ...rows.problems],
    notes: [...source.notes, ...rows.notes],
  };
}

async function readRows(file: string, options: SourceOptions): Promise<Source> {
  const read = await readBytes(file);
  if ("problem" in read) return unreadSource(read.problem);
  const { source } = await sourceOf(file, read.bytes, options);
  if (!source.job) return source;
  return unreadSource({
    place: { file, row: null },
    message: "the rows' file is a job of its own",
    expected: "a file with rows alone",
    got: "a job",
  });
}

/** The source in these bytes; `rowsFile` is the file that a job names for its rows. */
export async function sourceOf(
  file: string,
  bytes: Uint8Array,
  { delimiter, sheet }: SourceOptions,
): Promise<{ source: Source; rowsFile?: string }> {
  if (isWorkbook(bytes)) return { source: await readWorkbook(file, bytes, sheet) };
  const read = decodedText(file, bytes);
  if ("problem" in read) return { source: unreadSource(read.problem) };
  const format = formatOf(file, read.text);
  // A job may name a workbook for its rows; the flag is for that one then.
  const chooses = sheet !== undefined && (format === "csv" || format === "lines");
  if (chooses) return { source: unreadSource(noSheets(file, sheet)) };
  const parsed =
    format === "csv"
      ? { source: readCsv(file, read.text, delimiter) }
      : format === "lines"
        ? { source: readLines(file, read.text) }
        : readDocument(file, read.text, format);
  const notes = [...read.notes, ...parsed.source.notes];
  return { ...parsed, source: { ...parsed.source, notes } };
}

type Format = "csv" | "lines" | "JSON" | "YAML";

const formats: Readonly<Record<string, Format>> = {
  ".csv": "csv",
  ".tsv": "csv",
  ".json": "JSON",
  ".jsonl": "lines",
  ".ndjson": "lines",
  ".yaml": "YAML",
  ".yml": "YAML",
};

/** A text shows what it is well before this many characters. */
const startCharactersMax = 65_536;

/** By the name where it tells, else by how the text begins: no sheet's header begins with a bracket or like YAML. */
function formatOf(file: string, text: string): Format {
  const named = formats[extname(file).toLowerCase()];
  if (named) return named;
  // Comments may go before, in any of them.
  const start = text
    .slice(0, startCharactersMax)
    .replace(/^(?:\s*#[^\n]*\n)+/, "")
    .trimStart();
  if (/^\{.*\}[ \t]*\r?\n\s*(\{|$)/.test(start) && !/^\{\s*"?(rows|name)"?\s*:/.test(start)) return "lines";
  if (/^[[{]/.test(start)) return "JSON";
  return /^(---\s|- +[\w"']+ *:|\w+ *:\s)/.test(start) ? "YAML" : "csv";
}

function noSheets(file: string, sheet: string): Problem {
  return {
    place: { file, row: null },
    message: "the file has no sheets to choose from",
    expected: "a workbook (.xlsx) with --sheet",
    got: `--sheet ${sheet}`,
  };
}
