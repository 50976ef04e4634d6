import { inCredits, sumOf } from "../../core/money.js";
import type { Item } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import type { MadeOfOther } from "../../store/workspace/approvals.js";
import type { Store } from "../../store/workspace/workspace.js";
import { someOf } from "../../text/reasons.js";
import { shellWord } from "../../text/shell.js";

/** The most names in a command that is shown. */
const namedMax = 20;

/** A take that a person has chosen, and an item that was made of another take of its row. */
export interface OtherTake {
  chosen: Pick<Item, "rowId" | "approval">;
  other: Pick<MadeOfOther, "rowId" | "madeOf" | "approval" | "price">;
  /** Another take of that item, which was made of the chosen one already. */
  instead?: string | undefined;
}

/** What was made of other takes of the rows of these chosen items: one take of each item, the one that is handed over. */
export async function otherTakesOf(
  store: Pick<Store, "madeOfOthers">,
  chosen: readonly Item[],
  approval?: "approved",
): Promise<OtherTake[]> {
  const found: OtherTake[] = [];
  for (const item of chosen.filter((each) => !chosen.some((next) => isNewerTake(next, each))))
    for (const other of eachRowOnce(await store.madeOfOthers(item.id)))
      found.push({ chosen: { rowId: item.rowId, approval: approval ?? item.approval }, other });
  return found;
}

/** Of several approved takes of a row, the newest is handed on. */
function isNewerTake(next: Item, item: Item): boolean {
  return (
    next.variant > item.variant &&
    next.jobId === item.jobId &&
    next.edition === item.edition &&
    rowIdOf(next) === rowIdOf(item)
  );
}

/** Of each row's takes the picked one, else the newest approved one, else the first that is not rejected. */
function eachRowOnce(others: readonly MadeOfOther[]): MadeOfOther[] {
  const rows = new Map<string, MadeOfOther[]>();
  for (const other of others) {
    const row = `${other.position} ${other.rowNumber}`;
    rows.set(row, [...(rows.get(row) ?? []), other]);
  }
  return [...rows.values()].flatMap(
    (takes) =>
      takes.find(({ picks }) => picks > 0) ??
      takes.findLast(({ own }) => own === "approved") ??
      takes.find(({ own }) => own !== "rejected") ??
      takes.slice(-1),
  );
}

/**
 * What was made of other takes than the chosen ones, and the commands that make it of these, with the price; null if nothing was.
 * `flags` are those that the user has to type again.
 */
export function otherTakesText(takes: readonly OtherTake[], flags: string): string | null {
  const there = takes.filter(({ instead }) => instead !== undefined);
  const again = takes.filter(({ instead }) => instead === undefined);
  const sentences = [
    ...(again.length === 0 ? [] : [redoText(again, flags)]),
    ...(there.length === 0 ? [] : [pickText(there, flags)]),
  ];
  return sentences.length === 0 ? null : sentences.join(". ");
}

function redoText(takes: readonly OtherTake[], flags: string): string {
  // An item may be made of several others.
  const prices = new Map(takes.map(({ other }) => [other.rowId, other.price]));
  const before = [
    ...commandFor(
      "reject",
      takes.flatMap(({ other }) => (other.approval === "rejected" ? [] : [other.madeOf])),
      flags,
    ),
    ...commandFor(
      "approve",
      takes.flatMap(({ chosen: { rowId, approval } }) => (approval === "approved" ? [] : [rowId])),
      flags,
    ),
  ];
  const first = before.length === 0 ? "" : `${before.join(", ")}, then `;
  const it = prices.size === 1 ? "it" : "them";
  const price = inCredits(sumOf([...prices.values()]));
  return `${madeOfText(takes)}: ${first}${commandFor("redo", [...prices.keys()], flags)} makes ${it} of ${chosenOf(takes)}, for ${price}`;
}

function pickText(takes: readonly OtherTake[], flags: string): string {
  const names = [...new Set(takes.flatMap(({ instead }) => instead ?? []))];
  const it = names.length === 1 ? "that" : "those";
  return `${madeOfText(takes)}, and ${someOf(names)} of ${chosenOf(takes)}: ${commandFor("pick", names, flags)} takes ${it}`;
}

function madeOfText(takes: readonly OtherTake[]): string {
  const ids = [...new Set(takes.map(({ other }) => other.rowId))];
  const madeOf = [...new Set(takes.map(({ other }) => other.madeOf))];
  return `${someOf(ids)} ${ids.length === 1 ? "was" : "were"} made of ${someOf(madeOf)}`;
}

function chosenOf(takes: readonly OtherTake[]): string {
  return someOf([...new Set(takes.map(({ chosen }) => chosen.rowId))]);
}

/** A command for these items, each once; none for no items. */
function commandFor(name: string, items: readonly string[], flags: string): string[] {
  const names = [...new Set(items)];
  if (names.length === 0) return [];
  const more = names.length > namedMax ? ` (and the other ${names.length - namedMax})` : "";
  return [`\`bulkgen ${name} ${names.slice(0, namedMax).map(shellWord).join(" ")}${flags}\`${more}`];
}

/** What was made of rejected takes, by their ids. */
export function madeOfRejectedText(ids: readonly string[]): string {
  const [was, is, it] = ids.length === 1 ? ["was", "is", "it"] : ["were", "are", "them"];
  return `${someOf(ids)} ${was} made of what is rejected, and ${is} left out of the final set: approve another take, then redo ${it}`;
}
