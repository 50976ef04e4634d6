import { mediaFields } from "../api/inputs.js";
import type { Item } from "../core/ports/store.js";
import type { CheckedRow } from "./check-row.js";
import type { Selectable } from "./select.js";

type Content = Pick<Item, "model" | "prompt" | "params" | "inputs" | "priority">;

/** A row's values as a selection sees them: its cells, and what the defaults made of them. */
export function valuesOfRow({ row, model }: CheckedRow): Map<string, string> {
  const { id, output } = row;
  return valuesOf(Object.entries(row.columns), row, { id, output, category: model?.category });
}

/** An item as a selection sees it, with the cells of the row that it was made for. */
export function selectableItem(item: Item): Selectable & { item: Item } {
  const { rowNumber, rowId, state, name, category } = item;
  return {
    item,
    number: rowNumber,
    name: rowId,
    failed: state === "failed",
    values: valuesOf(item.cells, item, { id: rowId, output: name, category, state }),
  };
}

function valuesOf(
  cells: Item["cells"],
  { model, prompt, params, inputs, priority }: Content,
  known: Readonly<Record<string, string | null | undefined>>,
): Map<string, string> {
  const values = new Map<string, string>();
  const put = (key: string, value: string | null | undefined) => {
    if (value !== null && value !== undefined) values.set(key.toLowerCase(), value.trim().normalize("NFC"));
  };
  for (const [column, cell] of cells) put(column, cell);
  for (const [key, value] of Object.entries(params)) put(`params.${key}`, value);
  for (const field of mediaFields) put(field, inputs[field]);
  for (const [key, value] of Object.entries({ model, prompt, priority: String(priority), ...known }))
    put(key, value);
  return values;
}
