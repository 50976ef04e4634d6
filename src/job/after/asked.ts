import type { MadeItem, Run, SheetRow } from "../../core/ports/store.js";
import type { Store } from "../../store/workspace/workspace.js";
import { sheetOf, withVariants } from "../orders/request.js";

/** An item that a sheet asks for. */
export interface AskedItem {
  /** Its row id; the number of its row if nothing was ever planned for it. */
  rowId: string;
  /** The item and its retakes, as far as they are on record. */
  takes: readonly MadeItem[];
}

/** How many items are read at a time. */
const itemsAtOnce = 1_000;

/**
 * What the newest sheet of the run's job and edition asks for, each item once and page by page: there may be more than fit
 * into memory.
 */
export async function* askedItems(store: Store, run: Run): AsyncGenerator<readonly AskedItem[]> {
  const sheet = await sheetOf(store, { ...run, id: Number.POSITIVE_INFINITY });
  const variantsMax = await store.variantsMax(run.jobId);
  const seen = new Set<string>();
  for await (const page of sheet?.pages() ?? []) {
    const asked = page.flatMap((row) => keysOf(row, seen).map((key) => ({ row, key })));
    for (let from = 0; from < asked.length; from += itemsAtOnce) {
      const now = asked
        .slice(from, from + itemsAtOnce)
        .map(({ row, key }) => ({ row, keys: key === null ? [] : withVariants(key, variantsMax) }));
      const made = await store.made(
        run.jobId,
        now.flatMap(({ keys }) => keys),
      );
      const known = new Map(made.map((each) => [each.item.key, each]));
      yield now.map(({ row: { number, cells }, keys }) => {
        const takes = keys.flatMap((key) => known.get(key) ?? []);
        return { rowId: takes[0]?.item.rowId ?? cells["id"] ?? `row ${number}`, takes };
      });
    }
  }
}

/** The keys of a row that no row before it has; null for what is wrong in it. */
function keysOf({ keys, problem }: SheetRow, seen: Set<string>): (string | null)[] {
  const own = keys.filter((key) => !seen.has(key));
  for (const key of own) seen.add(key);
  return problem === null ? own : [...own, null];
}
