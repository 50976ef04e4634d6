import { posix } from "node:path";
import { outputName, safeName } from "../../archive/disk/names.js";
import { prunedNote } from "../../archive/index-file.js";
import type { ExitName } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import type { MadeItem } from "../../core/ports/store.js";
import { plainName } from "../../core/variant.js";
import type { Store } from "../../store/workspace/workspace.js";
import { reasonOf } from "../evidence.js";

/**
 * The set that is handed over has one take of each item of the sheet, be it the item itself or one of its variants: the one
 * that a person has picked, else the newest that a person has approved, else the first that has a file and was not made of a
 * rejected take. A take that is rejected, or still waits for approval, is never handed over.
 */

/** The final takes, of which there are several only if a person has picked several; or why there is none. */
export type Final = { takes: readonly MadeItem[] } | { without: string; exit: ExitName };

/** What people have decided about takes: the picked items, and the keys of what was made of rejected ones. */
export interface Decisions {
  picks: ReadonlySet<number>;
  ofRejected: ReadonlySet<string>;
}

export async function decisionsOn(
  store: Pick<Store, "picks" | "madeOfRejected">,
  jobId: number,
): Promise<Decisions> {
  return { picks: await store.picks(), ofRejected: await store.madeOfRejected(jobId) };
}

/** `takes` are an item and its variants, in the order of their numbers. */
export function finalOf(takes: readonly MadeItem[], { picks, ofRejected }: Decisions): Final {
  const made = takes.filter(({ files }) => files.length > 0);
  const usable = made.filter(({ item: { approval } }) => approval === null || approval === "approved");
  const picked = usable.filter(({ item }) => picks.has(item.id));
  if (picked.length > 0) return { takes: picked };
  const blocked = made.find(({ item }) => picks.has(item.id));
  if (blocked) {
    const { rowId, approval } = blocked.item;
    const why = approval === "rejected" ? "is rejected" : "waits for approval";
    return { without: `${rowId} is picked, but ${why}`, exit: "held" };
  }
  const approved = usable.findLast(({ item }) => item.approval === "approved");
  const best = approved ?? usable.find(({ item }) => !ofRejected.has(item.key));
  if (best !== undefined) return { takes: [best] };
  const [first] = usable;
  return first === undefined
    ? without(takes)
    : {
        without: `${first.item.rowId} was made of a rejected take; redo it, or pick it as it is`,
        exit: "held",
      };
}

/** What ends a command that finds an item in this state without a file. */
const exits: Readonly<Partial<Record<ItemState, ExitName>>> = {
  failed: "failed",
  dropped: "failed",
  archived: "failed",
  held: "held",
  blocked: "held",
  unknown: "held",
  overdue: "held",
};

const words: Readonly<Partial<Record<ItemState, string>>> = {
  dropped: "skipped",
  blocked: "waits for an item whose output it uses",
  planned: "not made yet",
};

function without(takes: readonly MadeItem[]): Final {
  const undecided = takes.find(({ item }) => item.approval === "waiting" && item.state === "archived");
  if (undecided) return { without: `${undecided.item.rowId} waits for approval`, exit: "held" };
  const rejected = takes.some(({ item }) => item.approval === "rejected");
  const newest = takes.at(-1);
  if (newest === undefined) return { without: "not made", exit: "unfinished" };
  const { item } = newest;
  if (rejected && item.state === "archived") return { without: "rejected", exit: "held" };
  const isBare = item.state === "archived" && !item.note?.startsWith(prunedNote);
  const said = isBare ? "its file is gone" : item.note === null ? words[item.state] : null;
  return { without: said ?? `${item.state}: ${reasonOf(item)}`, exit: exits[item.state] ?? "unfinished" };
}

/**
 * The names of an item's files in a final set, without the number of its variant: what a row is called does not depend on how
 * often it was made.
 */
export function finalFileNames({ item, files }: Pick<MadeItem, "item" | "files">): string[] {
  if (item.variant === 1) return files.map(({ file }) => file);
  const name = safeName(plainName(item));
  return files.map(({ file }, index) => outputName(name, index + 1, files.length) + posix.extname(file));
}
