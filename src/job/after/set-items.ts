import type { MadeItem, Run, SheetRow } from "../../core/ports/store.js";
import type { Store } from "../../store/workspace/workspace.js";
import { sheetOf, withTakes } from "../../workspace/takes/sheet-takes.js";

/** An item that a sheet asks for. */
export interface SetItem {
  /** Its row id; the number of its row if nothing was ever planned for it. */
  rowId: string;
  /** The item and its retakes, as far as they are on record. */
  takes: readonly MadeItem[];
}

/**
 * What the newest sheet of the run's job and edition asks for, each item once and page by page: there may be more than fit
 * into memory.
 */
export async function* setItems(store: Store, run: Run): AsyncGenerator<readonly SetItem[]> {
  const sheet = await sheetOf(store, { ...run, id: Number.POSITIVE_INFINITY });
  const variantsMax = await store.variantsMax(run.jobId);
  const seen = new Set<string>();
  for await (const rows of sheet?.pages() ?? []) {
    const asked = rows.flatMap((row) => keysOf(row, seen).map((key) => ({ row, key })));
    for await (const page of withTakes(store, run.jobId, asked, variantsMax))
      yield page.map(({ row: { number, cells }, takes }) => ({
        rowId: takes[0]?.item.rowId ?? cells["id"] ?? `row ${number}`,
        takes,
      }));
  }
}

/** The keys of a row that no row before it has; null for what is wrong in it. */
function keysOf({ keys, problem }: SheetRow, seen: Set<string>): (string | null)[] {
  const own = keys.filter((key) => !seen.has(key));
  for (const key of own) seen.add(key);
  return problem === null ? own : [...own, null];
}
