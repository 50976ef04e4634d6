import type { FilledSheet } from "../job/archive/export.js";
import { spreadsheetText } from "../text/spreadsheet-cell.js";
import { jsonText } from "../text/terminal.js";

export const sheetFormats = ["csv", "xlsx", "json", "jsonl"] as const;
export type SheetFormat = (typeof sheetFormats)[number];

/** What a workbook's sheet and a cell of it can hold. */
const xlsxRowsMax = 1_048_576;
const xlsxCharactersMax = 32_767;

/** A sheet that a format cannot hold. */
export class SheetTooLarge extends Error {
  override readonly name = "SheetTooLarge";
}

/** The bytes of a sheet in a format. Throws SheetTooLarge. */
export async function encodeSheet(sheet: FilledSheet, format: SheetFormat): Promise<Uint8Array> {
  switch (format) {
    case "csv":
      return Buffer.from(await csvText(sheet));
    case "xlsx":
      return workbook(sheet);
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
async function csvText({ columns, lines }: FilledSheet): Promise<string> {
  const { stringify } = await import("csv-stringify/sync");
  const rows = [columns, ...lines].map((row) => row.map((cell) => safeCell(cell)));
  return stringify(rows, { bom: true, record_delimiter: "windows", quoted_match: /[\p{Cc}\p{Cf}]/u });
}

function safeCell(cell: string | number | null): string | number | null {
  return typeof cell === "string" ? spreadsheetText(cell) : cell;
}

/** Cells that say of themselves that they are text are never run as formulas. */
async function workbook({ columns, lines }: FilledSheet): Promise<Uint8Array> {
  if (lines.length >= xlsxRowsMax) {
    throw new SheetTooLarge(
      `a workbook can have at most ${xlsxRowsMax} rows, and there are ${lines.length + 1}; use csv`,
    );
  }
  const { default: writeWorkbook } = await import("write-excel-file/node");
  const header = columns.map((column) => ({ ...textCell(column), fontWeight: "bold" as const }));
  const rows = lines.map((line) =>
    line.map((cell) =>
      cell === null ? null : typeof cell === "number" ? { type: Number, value: cell } : textCell(cell),
    ),
  );
  const options = { sheet: "bulkgen", stickyRowsCount: 1 };
  return (await writeWorkbook([header, ...rows], options).toBuffer()) as Uint8Array;
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
