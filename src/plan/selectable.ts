import { mediaFields } from "../api/inputs.js";
import type { Item } from "../core/store.js";
import { copyName } from "../manifest/item-names.js";
import type { CheckedRow } from "./check-row.js";
import type { Selectable } from "./select.js";

type Content = Pick<Item, "model" | "prompt" | "params" | "inputs" | "priority">;

/** A row as a selection sees it: its cells, and what the defaults made of them. */
export function selectableRow<Checked extends CheckedRow>(
  checked: Checked,
  failedIds: ReadonlySet<string>,
  failed: boolean,
): Selectable & { checked: Checked } {
  const { row, model } = checked;
  const failedBefore =
    row.id !== null && Array.from({ length: row.repeat }, (_, i) => i + 1).some(isFailedCopy);
  function isFailedCopy(copy: number): boolean {
    return failedIds.has(copyName(row.id ?? "", copy));
  }
  return {
    checked,
    number: row.number,
    name: row.id ?? String(row.number),
    failed: failed || failedBefore,
    values: valuesOf(Object.entries(row.columns), row, {
      id: row.id,
      output: row.output,
      category: model?.category,
    }),
  };
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
