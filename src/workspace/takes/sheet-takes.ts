import { variantKey } from "../../core/identity.js";
import type { KeptSheet, MadeItem, Run } from "../../core/ports/store.js";
import type { Store } from "../../store/workspace/workspace.js";

/** How many items are read at a time. */
export const itemsAtOnce = 1_000;

/** The sheet of the run. A redo run has no sheet and uses the one of the run before it. */
export async function sheetOf(store: Store, run: Run): Promise<KeptSheet | null> {
  const runs = (await store.runs()).filter(
    ({ id, jobId, edition }) => jobId === run.jobId && edition === run.edition && id <= run.id,
  );
  for (const { id } of runs.toReversed()) {
    const sheet = await store.sheetOf(id);
    if (sheet) return sheet;
  }
  return null;
}

/** The key of an item, and those of its variants, of which no row has more than `most` with the item. */
export function withVariants(key: string, most: number): string[] {
  return [key, ...Array.from({ length: most - 1 }, (_, index) => variantKey(key, index + 2))];
}

export interface Asked {
  /** An item's key; null for one that was never planned. */
  key: string | null;
}

/** What a sheet asks for, page by page, each with its takes on record: the item, followed by its variants. */
export async function* withTakes<Each extends Asked>(
  store: Pick<Store, "made">,
  jobId: number,
  asked: readonly Each[],
  variantsMax: number,
): AsyncGenerator<(Each & { takes: readonly MadeItem[] })[]> {
  for (let from = 0; from < asked.length; from += itemsAtOnce) {
    const now = asked
      .slice(from, from + itemsAtOnce)
      .map((each) => ({ each, keys: each.key === null ? [] : withVariants(each.key, variantsMax) }));
    const made = await store.made(
      jobId,
      now.flatMap(({ keys }) => keys),
    );
    const known = byKey(made);
    yield now.map(({ each, keys }) => ({ ...each, takes: keys.flatMap((key) => known.get(key) ?? []) }));
  }
}

export function byKey(made: readonly MadeItem[]): Map<string, MadeItem> {
  return new Map(made.map((each) => [each.item.key, each]));
}
