import { prunedNote } from "../../archive/index-file.js";
import { variantKey } from "../../core/identity.js";
import type { Item, Run } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import type { lostPickReasons } from "../../documents/archive.js";
import type { Store } from "../../store/workspace/workspace.js";
import { someOf } from "../../text/reasons.js";
import { sandboxFlag } from "../../text/shell.js";

/**
 * What has become of a picked item: its row asks for something else now (`replaced`), the row itself is `gone`, or its files
 * were `pruned`.
 */
export type LostPick = (typeof lostPickReasons)[number];

type PickStore = Pick<Store, "picks" | "item" | "find" | "outputs">;

/**
 * Picked items without a file, or that no row asks for any more, by number, but those whose row has another pick. Exports and
 * galleries of what is picked lack them, so everything that makes or reads picks says so with `lostPicksText`.
 */
export async function lostPicks(store: PickStore): Promise<Map<number, LostPick>> {
  const lost = new Map<number, LostPick>();
  const current = new Set<string>();
  for (const item of await pickedItems(store)) {
    const row = rowInWorkspace(item);
    const ofRow = (await store.find(rowIdOf(item))).filter(
      (other) => other.variant === 1 && !other.vanished && rowInWorkspace(other) === row,
    );
    // A variant belongs to the request that it is another take of.
    const isOther = ofRow.length > 0 && !ofRow.some(({ key }) => takeOf(key, item) === item.key);
    if (item.vanished || isOther) lost.set(item.id, ofRow.length > 0 ? "replaced" : "gone");
    else if (await isPrunedItem(store, item)) lost.set(item.id, "pruned");
    else current.add(row);
  }
  for (const id of lost.keys()) if (current.has(rowInWorkspace(await store.item(id)))) lost.delete(id);
  return lost;
}

async function isPrunedItem(store: Pick<Store, "outputs">, { id, note }: Item): Promise<boolean> {
  if (!note?.startsWith(prunedNote)) return false;
  return (await store.outputs(id)).every(({ file }) => file === null);
}

/**
 * Which picks of a job are lost, and what to do; null if none is. That files were pruned matters to those who read the files of
 * this run of it: a run does not repeat it.
 */
export async function lostPicksText(
  store: PickStore,
  jobId: number,
  reading: Run | null = null,
): Promise<string | null> {
  const names: Record<LostPick, string[]> = { replaced: [], gone: [], pruned: [] };
  for (const [id, how] of await lostPicks(store)) {
    const item = await store.item(id);
    if (item.jobId === jobId) names[how].push(rowIdOf(item));
  }
  const { replaced, gone, pruned } = names;
  const pieces = [
    ...(replaced.length === 0
      ? []
      : [
          `${someOf(replaced)}: ${replaced.length === 1 ? "the picked file was" : "the picked files were"} replaced by a new version; pick again`,
        ]),
    ...(gone.length === 0
      ? []
      : [
          `${someOf(gone)}: picked, but no row of the sheet asks for ${gone.length === 1 ? "it" : "them"} any more`,
        ]),
    ...(pruned.length === 0 || reading === null
      ? []
      : [
          `${someOf(pruned)}: picked, but ${pruned.length === 1 ? "its file was" : "their files were"} pruned; \`bulkgen redo ITEM${sandboxFlag(reading.options)}\` makes a new one`,
        ]),
  ];
  return pieces.length === 0 ? null : pieces.join(". ");
}

/** The picks of rows that a run would make anew, in words; null if there are none. */
export async function picksToReplace(
  store: Pick<Store, "picks" | "item">,
  changed: Iterable<{ rowId: string; oldKey: string }>,
): Promise<string | null> {
  const picked = await pickedItems(store);
  const isPicked = ({ oldKey }: { oldKey: string }) =>
    picked.some((item) => takeOf(oldKey, item) === item.key);
  const rows = picked.length === 0 ? [] : [...changed].filter(isPicked);
  if (rows.length === 0) return null;
  const files = rows.length === 1 ? "the picked file" : "the picked files";
  return `${someOf(rows.map(({ rowId }) => rowId))}: ${files} will be replaced by a new version; pick again then`;
}

/** The key of the same take as this item of a row's request. */
function takeOf(key: string, { variant }: Pick<Item, "variant">): string {
  return variant === 1 ? key : variantKey(key, variant);
}

/** The name that an item, its variants and their earlier versions have in common within a job. */
export function rowOf(item: Pick<Item, "edition" | "rowId" | "variant">): string {
  return JSON.stringify([item.edition, rowIdOf(item)]);
}

export function rowInWorkspace(item: Item): string {
  return `${item.jobId} ${rowOf(item)}`;
}

export async function pickedItems(store: Pick<Store, "picks" | "item">): Promise<Item[]> {
  const items: Item[] = [];
  for (const id of await store.picks()) items.push(await store.item(id));
  return items;
}
