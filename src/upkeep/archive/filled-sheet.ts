import { mediaFields } from "../../api/inputs.js";
import type { Measures } from "../../archive/check/content.js";
import { EarlyExit } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import { type Credits, toNumber } from "../../core/money.js";
import type { Approval, Item, Sheet } from "../../core/ports/store.js";
import {
  columnName,
  exportedColumns,
  type FilledColumn,
  filledColumns,
  foldedName,
  paramKey,
  prefixedName,
} from "../../manifest/shape/columns.js";
import { editionFolder } from "../../plan/items.js";
import { terminalText } from "../../text/terminal.js";

/** An item as an export shows it. */
export interface FilledItem {
  rowId: string;
  /** The id of its row: without the number of a variant. */
  id: string;
  state: ItemState;
  reason: string | null;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  step: string | null;
  files: readonly FilledFile[];
  picked: boolean;
  approval: Approval | null;
  credits: Credits | null;
  taskId: string | null;
  externalTaskId: string | null;
  /** Evidence for the provider's support about each request that is in doubt or lost. */
  evidence: readonly string[];
}

export interface FilledFile extends Measures {
  /** Relative to the job's folder, or its address in the bucket that has it. */
  name: string;
  bytes: number;
  sha256: string;
  mime: string;
}

/** One line of an export: the cells of a row as written, and the result of one of its items. */
export interface FilledLine {
  /** As the spreadsheet counts. */
  number: number;
  cells: Readonly<Record<string, string>>;
  item: FilledItem | null;
  /** Why there is no item. */
  reason: string | null;
  /** Which copy of its row's combination it is, from 1; null where no sheet was kept, which alone says it. */
  copy: number | null;
}

/** A table, for any output format. */
export interface FilledSheet {
  /** The job of which these are only some rows. */
  partOf?: string;
  /** The edition of that job; the empty text for the first one. */
  edition?: string;
  columns: readonly string[];
  lines: Lines<readonly (string | number | null)[]>;
}

/** Lines that are read one by one, as often as needed: there may be more than fit into memory. */
export type Lines<Line> = Iterable<Line> | AsyncIterable<Line>;

/** Lines that a new generator reads each time. */
export function linesOf<Line>(read: () => AsyncGenerator<Line>): AsyncIterable<Line> {
  return { [Symbol.asyncIterator]: read };
}

export function mappedLines<Line, Other>(
  lines: Lines<Line>,
  made: (line: Line) => Other,
): AsyncIterable<Other> {
  return linesOf(async function* () {
    for await (const line of lines) yield made(line);
  });
}

/** Never part of a file name. */
export const between = " | ";

/** The state of a row without an item: it was invalid or never selected. */
const notMade = "not made";

/**
 * The user's sheet with the results: all their columns in order, then ours. If a column of theirs has the name of one of
 * ours, ours gets a prefix. If the sheet is itself an export, its result columns are filled in again.
 */
export function filledSheet(columns: Sheet["columns"], lines: Lines<FilledLine>): FilledSheet {
  const own = ownNames(columns);
  const theirs = columns.filter((column) => !own.includes(column));
  return {
    columns: [...theirs, ...own],
    lines: mappedLines(lines, (line) => [
      ...theirs.map((column) => line.cells[column] ?? null),
      ...filledColumns.map((column) => resultCells[column](line)),
    ]),
  };
}

type Cell = string | number | null;
type CellOf = (line: FilledLine) => Cell;

/** What an export writes into each of its columns. */
const resultCells: Readonly<Record<FilledColumn, CellOf>> = {
  item: ({ item }) => item?.rowId ?? null,
  file: ({ item }) => listed(item?.files.map(({ name }) => name)),
  picked: ({ item }) => pickedCell(item?.picked ?? false),
  approval: ({ item }) => item?.approval ?? null,
  state: ({ item }) => item?.state ?? notMade,
  reason: ({ item, reason }) => shownReason(item === null ? reason : item.reason),
  credits: ({ item }) => (item === null || item.credits === null ? null : toNumber(item.credits)),
  task_id: ({ item }) => item?.taskId ?? null,
  external_task_id: ({ item }) => item?.externalTaskId ?? null,
  evidence: ({ item }) => listed(item?.evidence),
};

function listed(values: readonly string[] = []): string | null {
  return values.length === 0 ? null : values.join(between);
}

/** What an export can say besides, in columns that are asked for by name: how an item was made, and what its files are. */
const madeCells: Readonly<Record<string, CellOf>> = {
  id: ({ item }) => item?.id ?? null,
  step: ({ item }) => item?.step ?? null,
  seed: ({ item }) => item?.params["seed"] ?? null,
  width: ofFiles(({ width }) => width),
  height: ofFiles(({ height }) => height),
  duration: ofFiles(({ duration }) => duration),
  mime: ofFiles(({ mime }) => mime),
  bytes: ofFiles(({ bytes }) => bytes),
  sha256: ofFiles(({ sha256 }) => sha256),
};

/** Columns whose values are in the index of the job's folder. */
export const measuredColumns = ["width", "height", "duration"] as const;

/** The value of an item's file; of several, all of them in one cell. */
function ofFiles(value: (file: FilledFile) => string | number | undefined): CellOf {
  return ({ item }) => {
    const all = (item?.files ?? []).map((file) => value(file) ?? "");
    return all.length === 1 ? all[0] || null : listed(all.map(String));
  };
}

/** What was sent, which a template may have made; the row's own cell where nothing was. */
function sent(column: string): CellOf | null {
  const key = paramKey(column);
  const own = ({ cells }: FilledLine) => cells[column] ?? null;
  if (column === "model" || column === "prompt") return (line) => (line.item ? line.item[column] : own(line));
  if (key !== null) return (line) => (line.item ? (line.item.params[key] ?? null) : own(line));
  return null;
}

/** A column of an export, chosen by its name. */
export interface ChosenColumn {
  /** What bulkgen calls it. */
  column: string;
  /** What it is called in the export. */
  name: string;
  /** How a person asks for it, such as `file=image`. */
  written: string;
  cell: CellOf;
  /** Whether each item has its own value: the others are the same for all items of a row. */
  ofItem: boolean;
}

/**
 * The column of that name: as the manifest's header or bulkgen calls it, else one of those that say how an item was made.
 * Undefined if there is none.
 */
export function columnNamed(
  wanted: string,
  columns: Sheet["columns"],
  headers: ReadonlyMap<string, string>,
): Omit<ChosenColumn, "name" | "written"> | undefined {
  const is = (other: string) => foldedName(other) === foldedName(wanted);
  const own = ownNames(columns);
  const result = own.findIndex(is);
  const ofResult = filledColumns[result];
  if (ofResult !== undefined)
    return { column: own[result] ?? ofResult, cell: resultCells[ofResult], ofItem: true };
  const ofSheet = columns.find((column) => is(column) || is(headers.get(column) ?? column));
  const known = ofSheet ?? columnName(wanted);
  const made = sent(known);
  if (made !== null) return { column: known, cell: made, ofItem: true };
  if (ofSheet !== undefined)
    return { column: ofSheet, cell: ({ cells }) => cells[ofSheet] ?? null, ofItem: false };
  const name = Object.keys(madeCells).find((each) => is(each) || is(prefixedName(each)));
  if (name === undefined) return undefined;
  const isTaken = columns.some((column) => foldedName(column) === name);
  const column = isTaken ? prefixedName(name) : name;
  return { column, cell: madeCells[name] as CellOf, ofItem: name !== "id" };
}

/** Every name that `columnNamed` knows besides params. */
export function columnNames(columns: Sheet["columns"]): string[] {
  return [...new Set([...columns, ...ownNames(columns), "model", "prompt", ...Object.keys(madeCells)])];
}

/**
 * The names of columns of an export. Throws EarlyExit if two have the same: a program that reads the export would lose one of
 * them.
 */
export function distinctNames(columns: readonly Pick<ChosenColumn, "name" | "written">[]): string[] {
  const known = new Map<string, string>();
  for (const { name, written } of columns) {
    const other = known.get(name);
    if (other === undefined) known.set(name, written);
    else
      throw new EarlyExit(
        "usage",
        `--columns: "${other}" and "${written}" would both be the column "${name}". Give one of them another name, such as ${written.replace(/=[^=]*$/, "")}=NAME. Nothing was written.`,
      );
  }
  return [...known.keys()];
}

/** The chosen columns alone. */
export function chosenSheet(chosen: readonly ChosenColumn[], lines: Lines<FilledLine>): FilledSheet {
  return {
    columns: distinctNames(chosen),
    lines: mappedLines(lines, (line) => chosen.map(({ cell }) => cell(line))),
  };
}

/** Our columns, named so that none collides with a column of the sheet. */
export function ownNames(columns: Sheet["columns"]): string[] {
  const exported = exportedColumns(columns);
  if (exported) return exported;
  const taken = new Set(columns.map((column) => column.toLowerCase()));
  return filledColumns.map((name) => (taken.has(name) ? prefixedName(name) : name));
}

export function pickedCell(isPicked: boolean): string | null {
  return isPicked ? "yes" : null;
}

export interface FailedItem {
  item: Pick<
    Item,
    "rowId" | "name" | "edition" | "model" | "prompt" | "params" | "inputs" | "priority" | "cells"
  >;
  reason: string;
}

/**
 * A manifest of the failed items, with the reason, that can be run as it is: its cells hold the values that defaults,
 * templates and matrices produced, and each copy of a repeated row has its own line.
 */
export async function failedManifest(
  columns: Sheet["columns"],
  failed: Lines<FailedItem>,
): Promise<FilledSheet> {
  const kept = new Set([
    "id",
    ...columns.filter((column) => column !== "id" && column !== "repeat" && column !== "reason"),
  ]);
  for await (const { item } of failed) for (const column of cellsOf(item, columns).keys()) kept.add(column);
  return {
    columns: [...kept, "reason"],
    lines: mappedLines(failed, ({ item, reason }) => {
      const cells = cellsOf(item, columns);
      return [...[...kept].map((column) => cells.get(column) ?? null), shownReason(reason)];
    }),
  };
}

/** A reason for people; it may be the service's own text. */
function shownReason(reason: string | null): string | null {
  return reason === null ? null : terminalText(reason);
}

function cellsOf(item: FailedItem["item"], columns: Sheet["columns"]): Map<string, string> {
  const cells = new Map<string, string>(item.cells.filter(([column]) => columns.includes(column)));
  for (const column of cells.keys()) if (column.startsWith("params.")) cells.delete(column);
  const put = (column: string, value: string | null | undefined) => {
    if (value !== null && value !== undefined && value !== "") cells.set(column, value);
    else cells.delete(column);
  };
  put("id", item.rowId);
  put("model", item.model);
  put("prompt", item.prompt);
  for (const [key, value] of Object.entries(item.params)) put(`params.${key}`, value);
  for (const field of mediaFields) put(field, item.inputs[field]);
  // The edition's folder comes with the edition.
  const folder = editionFolder(item.edition);
  const output = item.name.startsWith(folder) ? item.name.slice(folder.length) : item.name;
  if (columns.includes("output") || output !== item.rowId) put("output", output);
  if (item.priority !== 0) put("priority", String(item.priority));
  for (const column of ["repeat", "reason"]) cells.delete(column);
  return cells;
}
