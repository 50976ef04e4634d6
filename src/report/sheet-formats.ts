import { noForm, type SheetForm } from "../manifest/shape/source.js";
import type { SheetFormat } from "../options/archive.js";
import { quotedCells, spreadsheetText } from "../text/spreadsheet-cell.js";
import { jsonText, textWidth } from "../text/terminal.js";
import type { FilledSheet } from "../upkeep/archive/filled-sheet.js";

/** What a workbook's sheet and a cell of it can hold. */
const xlsxRowsMax = 1_048_576;
const xlsxCharactersMax = 32_767;

/** A sheet that a format cannot hold. */
export class SheetTooLarge extends Error {
  override readonly name = "SheetTooLarge";
}

/**
 * The text or the bytes of a sheet in a format, piece by piece. A table has the separator, the headers and the types of the
 * manifest; programs get columns by their known names. A workbook is one piece, of lines that are all in memory. Throws
 * SheetTooLarge.
 */
export function encodeSheet(
  sheet: FilledSheet,
  format: SheetFormat,
  form: SheetForm = noForm,
): AsyncIterable<string | Uint8Array> {
  switch (format) {
    case "csv":
      return csvPieces(sheet, form);
    case "xlsx":
      return workbook(sheet, form);
    case "json":
      return jsonPieces(sheet);
    case "jsonl":
      return jsonLines(sheet);
  }
}

/** With a byte order mark, without which spreadsheets misread accents. */
async function* csvPieces(
  { columns, lines, ...part }: FilledSheet,
  { delimiter, headers }: SheetForm,
): AsyncGenerator<string> {
  const { stringify } = await import("csv-stringify/sync");
  const options = {
    record_delimiter: "windows",
    delimiter: delimiter ?? ",",
    quoted_match: quotedCells,
  };
  const textOf = (rows: readonly Line[]) => rows.map((row) => row.map((cell) => safeCell(cell)));
  const header = columns.map((column) => headers.get(column) ?? column);
  yield stringify(textOf([...partLines(part), header]), { ...options, bom: true });
  for await (const page of pagesOf(lines)) yield stringify(textOf(page), options);
}

type Line = readonly (string | number | null)[];

const linesAtOnce = 1_000;

async function* pagesOf(lines: FilledSheet["lines"]): AsyncGenerator<Line[]> {
  let page: Line[] = [];
  for await (const line of lines) {
    page.push(line);
    if (page.length < linesAtOnce) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** Names the job and the edition that the rows belong to, so that they are not bought for another one. */
function partLines({ partOf, edition = "" }: Pick<FilledSheet, "partOf" | "edition">): string[][] {
  if (partOf === undefined) return [];
  return [[`# job: ${partOf}`], ...(edition === "" ? [] : [[`# edition: ${edition}`]])];
}

function safeCell(cell: string | number | null): string | number | null {
  return typeof cell === "string" ? spreadsheetText(cell) : cell;
}

/** Cells that are marked as text are never run as formulas. */
async function* workbook(
  { columns, lines, ...part }: FilledSheet,
  { headers, types }: SheetForm,
): AsyncGenerator<Uint8Array> {
  const { default: writeWorkbook } = await import("write-excel-file/node");
  const names = columns.map((column) => headers.get(column) ?? column);
  const header = names.map((name) => ({ ...textCell(name), fontWeight: "bold" as const }));
  const columnTypes = columns.map((column) => types.get(column));
  const above = partLines(part).map((line) => line.map(textCell));
  const rows: ReturnType<typeof typedCell>[][] = [...above, header];
  let widths = names.map((name) => textWidth(name));
  let count = 0;
  for await (const line of lines) {
    count++;
    if (count >= xlsxRowsMax) continue;
    if (count <= 200)
      widths = widths.map((width, index) => Math.max(width, textWidth(String(line[index] ?? ""))));
    rows.push(line.map((cell, index) => typedCell(cell, columnTypes[index])));
  }
  if (count >= xlsxRowsMax) {
    throw new SheetTooLarge(
      `a workbook can have at most ${xlsxRowsMax} rows, and there are ${count + 1}; use csv`,
    );
  }
  const options = {
    sheet: "bulkgen",
    stickyRowsCount: 1 + above.length,
    columns: widths.map((width) => ({ width: Math.min(widthMax, Math.max(widthMin, width + 1)) })),
  };
  yield (await bytesOf(() => writeWorkbook(rows, options).toBuffer())) as Uint8Array;
}

/** The library makes one text of all cells, whose length is limited. */
async function bytesOf<Bytes>(write: () => Promise<Bytes>): Promise<Bytes> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof RangeError)
      throw new SheetTooLarge("the sheet is larger than a workbook can be made; use csv");
    throw error;
  }
}

const isoDate = /^\d{4}-\d{2}-\d{2}$/;

/** A cell of a column that has numbers or dates in the manifest is a number or a date again. */
function typedCell(cell: string | number | null, type: "number" | "date" | undefined) {
  if (cell === null) return null;
  if (typeof cell === "number") return { type: Number, value: cell };
  if (type === "number" && String(Number(cell)) === cell) return { type: Number, value: Number(cell) };
  if (type === "number" && percentage.test(cell)) return percentCell(cell);
  if (type === "date" && isoDate.test(cell))
    return { value: new Date(`${cell}T00:00:00Z`), format: "yyyy-mm-dd" };
  return textCell(cell);
}

const percentage = /^-?\d+(?:\.\d+)?%$/;

/** As many digits as it has. */
function percentCell(cell: string) {
  const digits = cell.slice(0, -1);
  const [, decimals = ""] = digits.split(".");
  const value = Number((Number(digits) / 100).toPrecision(15));
  return { type: Number, value, format: decimals === "" ? "0%" : `0.${"0".repeat(decimals.length)}%` };
}

/** The width in characters that shows most cells whole. */
const widthMin = 8;
const widthMax = 60;

function textCell(text: string): { type: StringConstructor; value: string } {
  if (text.length > xlsxCharactersMax) {
    throw new SheetTooLarge(
      `a cell of a workbook can have at most ${xlsxCharactersMax} characters, and one has ${text.length}; use csv`,
    );
  }
  // XML knows no other control characters.
  return { type: String, value: text.replace(/(?![\t\n\r])[\p{Cc}\p{Cs}\ufffe\uffff]/gu, "\ufffd") };
}

async function* jsonPieces({ columns, lines }: FilledSheet): AsyncGenerator<string> {
  let before = "[\n";
  for await (const page of pagesOf(lines)) {
    // Without the brackets of the page.
    yield before + jsonText(objectsOf(columns, page), 2).slice(2, -2);
    before = ",\n";
  }
  yield before === "[\n" ? "[]\n" : "\n]\n";
}

async function* jsonLines({ columns, lines }: FilledSheet): AsyncGenerator<string> {
  for await (const page of pagesOf(lines))
    yield objectsOf(columns, page)
      .map((line) => `${jsonText(line)}\n`)
      .join("");
}

/** Pairs and not assignments: a column may be called `__proto__`. */
function objectsOf(columns: FilledSheet["columns"], lines: readonly Line[]): object[] {
  return lines.map((line) =>
    Object.fromEntries(columns.map((column, index) => [column, line[index] ?? null] as const)),
  );
}
