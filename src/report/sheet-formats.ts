import type { FilledSheet } from "../job/archive/export.js";
import { noForm, type SheetForm } from "../manifest/shape/source.js";
import { spreadsheetText } from "../text/spreadsheet-cell.js";
import { jsonText, textWidth } from "../text/terminal.js";

const sheetFormats = ["csv", "xlsx", "json", "jsonl"] as const;
export type SheetFormat = (typeof sheetFormats)[number];

/** What a workbook's sheet and a cell of it can hold. */
const xlsxRowsMax = 1_048_576;
const xlsxCharactersMax = 32_767;

/** A sheet that a format cannot hold. */
export class SheetTooLarge extends Error {
  override readonly name = "SheetTooLarge";
}

/**
 * The bytes of a sheet in a format. A table has the separator, the headers and the types of the manifest; programs get
 * columns by their known names. Throws SheetTooLarge.
 */
export async function encodeSheet(
  sheet: FilledSheet,
  format: SheetFormat,
  form: SheetForm = noForm,
): Promise<Uint8Array> {
  switch (format) {
    case "csv":
      return Buffer.from(await csvText(sheet, form));
    case "xlsx":
      return workbook(sheet, form);
    case "json":
      return Buffer.from(`${jsonText(objectsOf(sheet), 2)}\n`);
    case "jsonl":
      return Buffer.from(
        objectsOf(sheet)
          .map((line) => `${jsonText(line)}\n`)
          .join(""),
      );
  }
}

/** With a byte order mark, without which spreadsheets take accents for something else. */
async function csvText(
  { columns, lines, partOf }: FilledSheet,
  { delimiter, headers }: SheetForm,
): Promise<string> {
  const { stringify } = await import("csv-stringify/sync");
  const header = columns.map((column) => headers.get(column) ?? column);
  const rows = [...jobLine(partOf), header, ...lines].map((row) => row.map((cell) => safeCell(cell)));
  return stringify(rows, {
    bom: true,
    record_delimiter: "windows",
    delimiter: delimiter ?? ",",
    quoted_match: /[\p{Cc}\p{Cf}]/u,
  });
}

/** Names the job that the rows belong to, so that they are not bought for another one. */
function jobLine(partOf: string | undefined): string[][] {
  return partOf === undefined ? [] : [[`# job: ${partOf}`]];
}

function safeCell(cell: string | number | null): string | number | null {
  return typeof cell === "string" ? spreadsheetText(cell) : cell;
}

/** Cells that say of themselves that they are text are never run as formulas. */
async function workbook(
  { columns, lines, partOf }: FilledSheet,
  { headers, types }: SheetForm,
): Promise<Uint8Array> {
  if (lines.length >= xlsxRowsMax) {
    throw new SheetTooLarge(
      `a workbook can have at most ${xlsxRowsMax} rows, and there are ${lines.length + 1}; use csv`,
    );
  }
  const { default: writeWorkbook } = await import("write-excel-file/node");
  const names = columns.map((column) => headers.get(column) ?? column);
  const header = names.map((name) => ({ ...textCell(name), fontWeight: "bold" as const }));
  const columnTypes = columns.map((column) => types.get(column));
  const rows = lines.map((line) => line.map((cell, index) => typedCell(cell, columnTypes[index])));
  const widths = names.map((name, index) => ({ width: widthOf(name, lines, index) }));
  const above = jobLine(partOf).map((line) => line.map(textCell));
  const options = { sheet: "bulkgen", stickyRowsCount: 1 + above.length, columns: widths };
  return (await writeWorkbook([...above, header, ...rows], options).toBuffer()) as Uint8Array;
}

const isoDate = /^\d{4}-\d{2}-\d{2}$/;

/** A cell of a column that has numbers or dates in the manifest is a number or a date again. */
function typedCell(cell: string | number | null, type: "number" | "date" | undefined) {
  if (cell === null) return null;
  if (typeof cell === "number") return { type: Number, value: cell };
  if (type === "number" && String(Number(cell)) === cell) return { type: Number, value: Number(cell) };
  if (type === "date" && isoDate.test(cell))
    return { value: new Date(`${cell}T00:00:00Z`), format: "yyyy-mm-dd" };
  return textCell(cell);
}

const widthMin = 8;
const widthMax = 60;

/** The width in characters that shows most cells whole. */
function widthOf(name: string, lines: FilledSheet["lines"], index: number): number {
  const longest = lines
    .slice(0, 200)
    .reduce((most, line) => Math.max(most, textWidth(String(line[index] ?? ""))), textWidth(name));
  return Math.min(widthMax, Math.max(widthMin, longest + 1));
}

function textCell(text: string): { type: StringConstructor; value: string } {
  if (text.length > xlsxCharactersMax) {
    throw new SheetTooLarge(
      `a cell of a workbook can have at most ${xlsxCharactersMax} characters, and one has ${text.length}; use csv`,
    );
  }
  // XML knows no other control characters.
  return { type: String, value: text.replace(/(?![\t\n\r])[\p{Cc}\p{Cs}\ufffe\uffff]/gu, "\ufffd") };
}

/** Pairs and not assignments: a column may be called `__proto__`. */
function objectsOf({ columns, lines }: FilledSheet): object[] {
  return lines.map((line) =>
    Object.fromEntries(columns.map((column, index) => [column, line[index] ?? null] as const)),
  );
}
