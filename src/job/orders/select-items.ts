import { EarlyExit } from "../../core/exit.js";
import type { Item, Run } from "../../core/ports/store.js";
import { isEverything, type Selection, select, selectionText, unknownKeys } from "../../plan/select.js";
import { selectableItem } from "../../plan/selectable.js";

/** Those of a run's items that are selected, by the cells of their rows too. Throws EarlyExit where there is none. */
export function selectItems(run: Run, items: readonly Item[], selection: Selection): Item[] {
  if (isEverything(selection)) return [...items];
  const rows = items.map(selectableItem);
  for (const { key, near } of unknownKeys(rows, selection)) {
    const meant = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
    throw new EarlyExit("usage", `--filter names "${key}", which no row of run ${run.id} has${meant}`);
  }
  const chosen = select(rows, selection);
  if (chosen.length > 0) return chosen.map(({ item }) => item);
  throw new EarlyExit("usage", `no item of run ${run.id} is selected by ${selectionText(selection)}`);
}
