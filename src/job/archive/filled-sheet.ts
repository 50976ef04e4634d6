import type { ItemState } from "../../core/item.js";
import { type Credits, toNumber } from "../../core/money.js";
import { filledColumns, type Sheet } from "../../core/ports/sheet.js";

/** An item as an export tells of it. */
export interface FilledItem {
  rowId: string;
  state: ItemState;
  reason: string | null;
  /** Relative to the job's folder. */
  files: readonly string[];
  credits: Credits | null;
  taskId: string | null;
  externalTaskId: string | null;
  /** What the provider's support needs to find each request of it that is in doubt, or was lost and given up. */
  evidence: readonly string[];
}

/** One line of an export: the cells of a row as people wrote them, and what became of one of its items. */
export interface FilledLine {
  cells: Readonly<Record<string, string>>;
  item: FilledItem | null;
  /** Why there is no item. */
  reason: string | null;
}

/** A table as it is written to any format. */
export interface FilledSheet {
  columns: readonly string[];
  lines: readonly (readonly (string | number | null)[])[];
}

/** No name of a file holds one. */
const between = " | ";

/** The state of a row that has no item: it was wrong, or not selected so far. */
const notMade = "not made";

/**
 * The team's own sheet with what became of it: all their columns in their order, then ours. A column of theirs that is
 * called like one of ours keeps its name, and ours gets a prefix; unless the sheet is an export itself, whose columns
 * are filled in anew.
 */
export function filledSheet(columns: Sheet["columns"], lines: readonly FilledLine[]): FilledSheet {
  const own = ownNames(columns);
  const theirs = columns.filter((column) => !own.includes(column));
  return {
    columns: [...theirs, ...own],
    lines: lines.map(({ cells, item, reason }) => [
      ...theirs.map((column) => cells[column] ?? null),
      item?.rowId ?? null,
      item === null || item.files.length === 0 ? null : item.files.join(between),
      item?.state ?? notMade,
      item === null ? reason : item.reason,
      item === null || item.credits === null ? null : toNumber(item.credits),
      item?.taskId ?? null,
      item?.externalTaskId ?? null,
      item === null || item.evidence.length === 0 ? null : item.evidence.join(between),
    ]),
  };
}

/** Our columns, called so that no column of the sheet is called the same. */
function ownNames(columns: Sheet["columns"]): string[] {
  if (filledColumns.every((name) => columns.includes(name))) return [...filledColumns];
  const taken = new Set(columns.map((column) => column.toLowerCase()));
  return filledColumns.map((name) => (taken.has(name) ? `bulkgen_${name}` : name));
}
