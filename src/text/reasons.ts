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
  const lines = groups
    .slice(0, most)
    .map(([reason, of]) => `${waitingText(of.length, reason) ?? `${of.length} × ${reason}`} (${someOf(of)})`);
  const others = groups.slice(most).reduce((sum, [, of]) => sum + of.length, 0);
  return others === 0 ? lines : [...lines, `${others} × other reasons`];
}

const waiting = "waits for an item ";
const plurals = { is: "are", was: "were", has: "have" };

/** Items that wait for others as a sentence; null if that is not the reason. */
function waitingText(items: number, reason: string): string | null {
  if (!reason.startsWith(waiting)) return null;
  if (items === 1) return `1 item ${reason}`;
  const which = reason.slice(waiting.length);
  const are = which.replace(
    /^which (is|was|has)\b/,
    (_, verb: keyof typeof plurals) => `which ${plurals[verb]}`,
  );
  return `${items} items wait for items ${are}`;
}
