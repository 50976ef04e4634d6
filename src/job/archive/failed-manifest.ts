import { mediaFields } from "../../api/inputs.js";
import type { Sheet } from "../../core/ports/sheet.js";
import type { Item } from "../../core/ports/store.js";
import type { FilledSheet } from "./filled-sheet.js";

export interface FailedItem {
  item: Pick<Item, "rowId" | "name" | "model" | "prompt" | "params" | "inputs" | "priority" | "cells">;
  reason: string;
}

/**
 * A manifest of what failed, with the reason, that can be run as it is: what defaults, templates and matrices made of a
 * row stands in its cells, and each copy of a repeated row has a line of its own.
 */
export function failedManifest(columns: Sheet["columns"], failed: readonly FailedItem[]): FilledSheet {
  const lines = failed.map(({ item, reason }) => ({ cells: cellsOf(item, columns), reason }));
  const kept = [
    "id",
    ...columns.filter((column) => column !== "id" && column !== "repeat" && column !== "reason"),
  ];
  const added = [...new Set(lines.flatMap(({ cells }) => [...cells.keys()]))].filter(
    (column) => !kept.includes(column),
  );
  return {
    columns: [...kept, ...added, "reason"],
    lines: lines.map(({ cells, reason }) => [
      ...[...kept, ...added].map((column) => cells.get(column) ?? null),
      reason,
    ]),
  };
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
  if (columns.includes("output") || item.name !== item.rowId) put("output", item.name);
  if (item.priority !== 0) put("priority", String(item.priority));
  for (const column of ["repeat", "reason"]) cells.delete(column);
  return cells;
}
