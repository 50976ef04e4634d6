import { mediaFields } from "../../api/inputs.js";
import type { Problem } from "../../core/problem.js";
import { nearest } from "../../text/nearest.js";
import { columnName, isKnown, paramKey } from "../shape/columns.js";
import {
  rowsInMemory,
  type SheetForm,
  type Source,
  type SourceBatch,
  unreadSource,
} from "../shape/source.js";
import { foreignZip } from "./foreign-file.js";
import { headerOf, titleRowsMax } from "./header.js";
import { hiddenSheets, lostCells } from "./lost-cells.js";
import { SheetReader } from "./sheet.js";
import { measure } from "./unpacked.js";

/** Whether these are the bytes of a workbook (.xlsx), or of another zip file. */
export function isWorkbook(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, 4)).toString("latin1") === "PK\x03\x04";
}

export interface WorkbookOptions {
  /** The name of the sheet; by default the first. */
  sheet?: string;
  /** The row of the header, as the sheet counts; found by default. */
  headerRow?: number;
  /** Is given each record as it is read, also those that are no rows, such as titles, comments and blank ones. */
  each?: ((record: readonly string[]) => void) | undefined;
}

/**
 * Reads one sheet of a workbook, the first or the named one. The file has values, not their formatting: dates and times
 * are read in ISO form, booleans in capitals, and numbers without the digits and signs that the sheet adds. Only
 * percentages are read as shown, because 0.15 in a prompt is not what the sheet says.
 */
export async function readWorkbook(
  file: string,
  bytes: Uint8Array,
  options: WorkbookOptions,
): Promise<Source> {
  const fail = (problem: Omit<Problem, "place">) => unreadSource({ place: { file, row: null }, ...problem });
  const expected = "a workbook as Excel saves it (.xlsx)";
  const { large, whole } = measure(bytes);
  if (large !== null) return fail({ message: large.what, expected: large.expected, got: "more" });
  const unread = (got: string) =>
    fail(foreignZip(bytes) ?? { message: "the workbook cannot be read", expected, got });
  if (whole === null) return unread(damaged);
  const { default: readExcelFile } = await import("read-excel-file/node");
  let all: { sheet: string; data?: unknown[][] }[];
  try {
    all = (await readExcelFile(Buffer.from(whole), { trim: false })) as typeof all;
  } catch (error) {
    return unread(damageText(error as Error));
  }
  // A chart on a sheet of its own has no data.
  const hidden = hiddenSheets(bytes);
  const sheets = all.flatMap(({ sheet, data }, index): Read[] =>
    data ? [{ sheet, data, index, isHidden: hidden[index] ?? false }] : [],
  );
  // The first that a person sees: a spreadsheet keeps lists and settings on hidden sheets before it.
  sheets.sort((a, b) => Number(a.isHidden) - Number(b.isHidden));
  return { ...sheetOf(file, bytes, sheets, options), sheets: sheets.map(({ sheet }) => sheet) };
}

interface Read {
  sheet: string;
  data: unknown[][];
  /** Its place in the workbook, counted from 0. */
  index: number;
  isHidden: boolean;
}

/** The sheet that was asked for, as a source. */
function sheetOf(
  file: string,
  bytes: Uint8Array,
  sheets: readonly Read[],
  { sheet: named, headerRow, each }: WorkbookOptions,
): Source {
  const fail = (problem: Omit<Problem, "place">) => unreadSource({ place: { file, row: null }, ...problem });
  const names = sheets.map(({ sheet }) => sheet);
  const found = named === undefined ? sheets[0] : sheets.find(({ sheet }) => sheet === named);
  if (!found) {
    const near = nearest(named ?? "", names);
    return fail({
      message: named === undefined ? "the workbook has no sheet" : `the workbook has no sheet "${named}"`,
      expected: names.length > 0 ? `one of: ${names.join(", ")}` : "a sheet",
      got: named ?? "none",
      ...(near === undefined ? {} : { nearest: near }),
    });
  }
  const meant = named === undefined ? otherManifest(sheets) : undefined;
  if (meant !== undefined)
    return fail({
      message: `the first sheet, "${found.sheet}", has no column that bulkgen knows, but the sheet "${meant}" has`,
      expected: `--sheet "${meant}" (or --sheet "${found.sheet}", if it is the right one)`,
      got: "no --sheet",
    });
  const { lost, hiddenRows, percentages, links } = lostCells(bytes, found.index, found.data);
  const records = squared(found.data.map((row) => row.map(cellText)));
  // The reader leaves out empty rows at the end, even if their formulas have errors.
  for (const [row, cells] of lost)
    if ([...cells.values()].some(({ kind }) => kind !== "merged"))
      while (records.length < row) records.push(records[0]?.map(() => "") ?? []);
  const at = headerRow === undefined ? headerOf(records) : { row: headerRow };
  const header = records[at.row - 1]?.map(columnName) ?? [];
  for (const [row, columns] of percentages)
    for (const column of columns) {
      const value = found.data[row - 1]?.[column - 1];
      const cells = records[row - 1];
      // A param that is a number stays one.
      const isParam = paramKey(header[column - 1] ?? "") !== null;
      if (typeof value === "number" && cells && !isParam) cells[column - 1] = percentText(value);
    }
  for (const [row, ofRow] of links)
    for (const [column, address] of ofRow) {
      const cells = records[row - 1];
      const isAddress = /^(?:https?:|data:|@)/i.test(cells?.[column - 1]?.trim() ?? "");
      if (cells && !isAddress && isMediaField(header[column - 1])) cells[column - 1] = address;
    }
  const sheet = new SheetReader(file, at, null, lost);
  for (const record of records) {
    each?.(record);
    sheet.add(record);
  }
  const others = named === undefined && names.length > 1 ? [otherSheets(sheets)] : [];
  const batch = sheet.take();
  const isEmpty = batch.rows.length + batch.problems.length === 0 && sheet.missingHeader().length === 0;
  if (isEmpty && others.length > 0)
    return fail({
      message: `the first sheet, "${found.sheet}", has no rows`,
      expected: `rows in it, or --sheet with the name of another sheet (${names.slice(1).join(", ")})`,
      got: "none",
    });
  const notes = [...sheet.notes(), ...hiddenNotes(hiddenRows, batch), ...others];
  const { headers, headerRow: foundRow } = sheet;
  const form = { headers, headerRow: foundRow, types: typesOf(sheet, found.data) };
  const batches = rowsInMemory(batch);
  return { columns: sheet.columns, problems: sheet.missingHeader(), notes, batches, form, ...sheet.part };
}

/** The first other sheet with models or prompts, if the first sheet has no known column: it may hold only notes. */
function otherManifest([first, ...others]: readonly { sheet: string; data: unknown[][] }[]):
  | string
  | undefined {
  const names = ({ data }: { data: unknown[][] }) =>
    data.slice(0, titleRowsMax).flatMap((row) => row.map((cell) => columnName(cellText(cell))));
  if (first === undefined || names(first).some(isKnown)) return undefined;
  return others.find((other) => names(other).some((name) => name === "model" || name === "prompt"))?.sheet;
}

/** The columns that have only numbers, or only dates, below the header. */
function typesOf({ header, at }: SheetReader, data: readonly unknown[][]): SheetForm["types"] {
  const types = new Map<string, "number" | "date">();
  for (const [index, column] of (header ?? []).entries()) {
    const cells = data.slice(at.row).flatMap((row) => row[index] ?? []);
    if (cells.length === 0) continue;
    if (cells.every((cell) => typeof cell === "number")) types.set(column, "number");
    else if (cells.every((cell) => cell instanceof Date)) types.set(column, "date");
  }
  return types;
}

/** In a workbook, a short row has empty cells at its end. */
function squared(records: readonly string[][]): string[][] {
  const width = records.reduce((most, record) => Math.max(most, record.length), 0);
  return records.map((record) => [...record, ...Array<string>(width - record.length).fill("")]);
}

function otherSheets([first, ...others]: readonly Pick<Read, "sheet" | "isHidden">[]): string {
  const named = ({ sheet, isHidden }: Pick<Read, "sheet" | "isHidden">) =>
    isHidden ? `${sheet}, which is hidden` : sheet;
  const hidden = first?.isHidden === true ? ", which is hidden" : "";
  return `the first sheet of the workbook was read, "${first?.sheet}"${hidden}; --sheet names another (${others.map(named).join(", ")})`;
}

/** Whether a column takes the address of a picture, film or sound. */
function isMediaField(column: string | undefined): boolean {
  return mediaFields.some((field) => field === column);
}

const rowsShown = 5;

/** A person who filtered a sheet may mean only the rows that it shows. */
function hiddenNotes(hidden: readonly number[], { rows }: SourceBatch): string[] {
  const hiddenRows = new Set(hidden);
  const read = rows.filter(({ number }) => hiddenRows.has(number)).map(({ number }) => number);
  if (read.length === 0) return [];
  const more = read.length > rowsShown ? ` and ${read.length - rowsShown} more` : "";
  const named = `${read.slice(0, rowsShown).join(", ")}${more}`;
  const [rowsText, them] =
    read.length === 1
      ? [`row ${named} is hidden in the spreadsheet, and is read`, "it"]
      : [`rows ${named} are hidden in the spreadsheet, and are read`, "them"];
  return [`${rowsText} like the others; to leave ${them} out, select rows with --filter or delete ${them}`];
}

/** What the reader's error says in words. */
const damaged = "a file that is damaged or not complete";

function damageText({ name, message }: Error): string {
  // The reader trips over what some programs leave out, such as the addresses of cells.
  if (name === "TypeError") return "another form of it (open it in a spreadsheet program and save it there)";
  if (/unzip/i.test(message)) return damaged;
  return /not found inside/.test(message) || message === "" ? "another kind of file" : message;
}

/** Without digits that come from multiplying: 0.07 is 7%. */
function percentText(value: number): string {
  return `${Number((value * 100).toPrecision(12))}%`;
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "" : dateText(value);
  if (typeof value === "number") return numberText(value);
  return typeof value === "boolean" ? String(value).toUpperCase() : String(value);
}

/** Without digits that come from calculating, which no spreadsheet shows: 19.9 * 1.19 is 23.681. */
function numberText(value: number): string {
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(15)));
}

/** A spreadsheet stores a time without a date as a time on its day zero: `16:09` is 16:09 on 30 December 1899. */
function dateText(value: Date): string {
  // Most times of day are no exact fraction of a day, and are read up to a millisecond early.
  const at = new Date(Math.round(value.getTime() / 1_000) * 1_000);
  const [day = "", time = ""] = at.toISOString().split("T");
  const [hours = "", minutes = "", seconds = ""] = time.split(/[:.]/);
  const clock = seconds === "00" ? `${hours}:${minutes}` : `${hours}:${minutes}:${seconds}`;
  const days = Math.floor((at.getTime() - Date.UTC(1899, 11, 30)) / 86_400_000);
  if (days >= 0 && days <= 4)
    return days === 0 ? clock : clock.replace(hours, String(Number(hours) + days * 24));
  return clock === "00:00" ? day : `${day} ${clock}`;
}
