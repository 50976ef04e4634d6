import { dirname, extname, join } from "node:path";
import type { Problem } from "../core/problem.js";
import { type Bytes, openBytes, standardInput, wholeOf } from "./formats/bytes.js";
import { openCsv } from "./formats/csv.js";
import type { DelimiterName } from "./formats/delimiters.js";
import type { Encoded } from "./formats/encoding.js";
import { examined, textPieces, utf8Pieces } from "./formats/text.js";
import { isWorkbook, readWorkbook } from "./formats/workbook.js";
import { type Source, unreadSource } from "./shape/source.js";

export interface SourceOptions {
  /** Standard input, for the manifest `-`. */
  stdin?: AsyncIterable<Uint8Array>;
  /** The delimiter of a CSV, where it is not to be guessed. */
  delimiter?: DelimiterName;
  /** The sheet of a workbook; otherwise its first. */
  sheet?: string;
}

/** Opens a manifest, of whatever format, and the file that it names for its rows. Throws for nothing that a file can hold. */
export async function openSource(path: string, options: SourceOptions): Promise<Source> {
  const bytes = await openBytes(path, options.stdin);
  if ("problem" in bytes) return unreadSource(bytes.problem);
  const { source, rowsFile } = await sourceOf(path, bytes, options);
  if (rowsFile === undefined) return source;
  const file = join(path === standardInput ? "." : dirname(path), rowsFile);
  const rows = await openRows(file, options);
  return {
    ...source,
    columns: rows.columns,
    problems: [...source.problems, ...rows.problems],
    notes: [...source.notes, ...rows.notes],
    batches: rows.batches,
  };
}

async function openRows(file: string, options: SourceOptions): Promise<Source> {
  const bytes = await openBytes(file);
  if ("problem" in bytes) return unreadSource(bytes.problem);
  const { source } = await sourceOf(file, bytes, options);
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
  bytes: Bytes,
  { delimiter, sheet }: SourceOptions,
): Promise<{ source: Source; rowsFile?: string }> {
  if (isWorkbook(await startOf(bytes)))
    return { source: await readWorkbook(file, await wholeOf(bytes), sheet) };
  const found = await examined(file, bytes);
  if ("problem" in found) return { source: unreadSource(found.problem) };
  const start = await startText(bytes, found.encoding);
  const format = formatOf(file, start);
  // A job may name a workbook for its rows; the flag is for that one then.
  const chooses = sheet !== undefined && (format === "csv" || format === "lines");
  if (chooses) return { source: unreadSource(noSheets(file, sheet)) };
  const parsed = await parsedAs(format, file, { bytes, found, start }, delimiter);
  const notes = [...found.notes, ...parsed.source.notes];
  return { ...parsed, source: { ...parsed.source, notes } };
}

interface Opened {
  bytes: Bytes;
  found: Encoded;
  start: string;
}

/** Only a sheet is read piece by piece: what a document says may stand at its very end. */
async function parsedAs(
  format: Format,
  file: string,
  { bytes, found, start }: Opened,
  delimiter?: DelimiterName,
): Promise<{ source: Source; rowsFile?: string }> {
  if (format === "csv") {
    const pieces = () => utf8Pieces(bytes, found.encoding);
    return { source: await openCsv(file, { pieces, start, returns: found.returns }, delimiter) };
  }
  let text = "";
  for await (const piece of textPieces(bytes, found.encoding)) text += piece;
  const { readDocument, readLines } = await import("./job-file/rows.js");
  return format === "lines" ? { source: readLines(file, text) } : readDocument(file, text, format);
}

async function startOf(bytes: Bytes): Promise<Uint8Array> {
  for await (const piece of bytes.pieces()) return piece;
  return new Uint8Array();
}

/** The text's beginning, enough of it to show what it is. */
async function startText(bytes: Bytes, encoding: Encoded["encoding"]): Promise<string> {
  let text = "";
  for await (const piece of textPieces(bytes, encoding)) {
    text += piece;
    if (text.length >= startCharactersMax) break;
  }
  return text.slice(0, startCharactersMax);
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
  const start = text.replace(/^(?:\s*#[^\n]*\n)+/, "").trimStart();
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
