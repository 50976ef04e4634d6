import { shortId } from "../core/identity.js";
import type { Draft, DraftSlot } from "../core/ports/draft.js";
import { copyName } from "../manifest/shape/item-names.js";
import type { GoodRow, Items } from "./items.js";

/**
 * An occurrence that a row's id had before stays with it, so that its file stays its own when rows change places; the
 * others take the next that is free.
 */
export function keepOccurrences(draft: Draft, keyOf: Items["keyOf"]): void {
  for (const slots of draft.groups()) {
    const [first] = slots;
    if (first === undefined) continue;
    const {
      prompt,
      contents,
      kind: { model, params },
    } = first.item;
    const same = { row: { prompt }, model: { model_key: model }, params, contents } as GoodRow;
    const keys = slots.map((_, index) => keyOf(same, index + 1));
    const free = new Set(keys.keys());
    const before = new Map(keys.map((key, index) => [draft.rowIdOf(key), index]));
    const chosen = new Map<DraftSlot, number>();
    for (const slot of slots) {
      const index = slot.id === null ? undefined : before.get(copyName(slot.id, slot.item.copy));
      if (index !== undefined && free.delete(index)) chosen.set(slot, index);
    }
    const rest = free.values();
    for (const slot of slots) take(draft, slot, keys, chosen.get(slot) ?? (rest.next().value as number));
  }
}

function take(draft: Draft, { position, id, item }: DraftSlot, keys: readonly string[], index: number): void {
  const key = keys[index] as string;
  if (item.occurrence === index + 1) return;
  const rowId = id === null ? shortId(key) : item.rowId;
  // A name that nobody gave begins with the id that the key gave.
  const own = id === null && item.name.startsWith(item.rowId);
  const name = own ? rowId + item.name.slice(item.rowId.length) : item.name;
  draft.rename(position, { key, occurrence: index + 1, rowId, name });
}
