import { mediaFields } from "../../api/inputs.js";
import type { ItemState } from "../../core/item.js";
import { type Credits, toNumber } from "../../core/money.js";
import { filledColumns, type Item, type Sheet } from "../../core/ports/store.js";
import { exportedColumns, prefixedName } from "../../manifest/shape/columns.js";
import { editionFolder } from "../../plan/items.js";
import { terminalText } from "../../text/terminal.js";

/** An item as an export shows it. */
export interface FilledItem {
  rowId: string;
  state: ItemState;
  reason: string | null;
  /** Relative to the job's folder. */
  files: readonly string[];
  picked: boolean;
  credits: Credits | null;
  taskId: string | null;
  externalTaskId: string | null;
  /** Evidence for the provider's support about each request that is in doubt or lost. */
  evidence: readonly string[];
}

/** One line of an export: the cells of a row as written, and the result of one of its items. */
export interface FilledLine {
  cells: Readonly<Record<string, string>>;
  item: FilledItem | null;
  /** Why there is no item. */
  reason: string | null;
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

/** What an export writes into each of its columns. */
const resultCells: Readonly<
  Record<(typeof filledColumns)[number], (line: FilledLine) => string | number | null>
> = {
  item: ({ item }) => item?.rowId ?? null,
  file: ({ item }) => listed(item?.files),
  picked: ({ item }) => pickedCell(item?.picked ?? false),
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
