import { count } from "./amounts.js";
import { shortText, terminalText } from "./terminal.js";

/** Characters of a reason that are shown. */
export const reasonCharactersMax = 320;

/** Why an item failed or waits; `kind` is empty if the reason says it all. */
export interface ItemReason {
  rowId: string;
  kind: string;
  reason: string;
}

/** Ids that are named for a reason before the rest is counted. */
const idsMax = 5;

/** The first row ids, and how many more of `all` there are. */
export function someOf(rowIds: readonly string[], all = rowIds.length): string {
  const named = rowIds.slice(0, idsMax).map(terminalText);
  return `${named.join(", ")}${all > named.length ? ` and ${all - named.length} more` : ""}`;
}

/** Items that are made with those that were asked for; `rowIds` are empty unless they are few. */
export function alsoMade({ items, rowIds }: { items: number; rowIds: readonly string[] }): string {
  const isOne = items === 1;
  const named = rowIds.length === 0 ? count(items, "other item") : someOf(rowIds);
  return `${named} ${isOne ? "is" : "are"} made too, because ${isOne ? "its" : "their"} run continues`;
}

/** One line for each reason, the most frequent first, with the ids of its items; beyond `most`, one line for the rest. */
export function groupedReasons(items: readonly ItemReason[], most: number): string[] {
  const ids = new Map<string, string[]>();
  for (const { rowId, kind, reason } of items) {
    const text = shortText(kind === "" ? reason : `${kind}: ${reason}`, reasonCharactersMax);
    const of = ids.get(text);
    if (of === undefined) ids.set(text, [rowId]);
    else of.push(rowId);
  }
  const groups = [...ids].toSorted(([, a], [, b]) => b.length - a.length);
  const lines = groups.slice(0, most).map(([reason, of]) => `${of.length} × ${reason} (${someOf(of)})`);
  const others = groups.slice(most).reduce((sum, [, of]) => sum + of.length, 0);
  return others === 0 ? lines : [...lines, `${others} × other reasons`];
}
