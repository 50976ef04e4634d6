import { nodeDisk } from "../../archive/disk/node-disk.js";
import { prunedNote } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Item, Run } from "../../core/ports/store.js";
import { itemNamed } from "../../job/orders/item-named.js";
import { otherTakesOf, otherTakesText } from "../../job/orders/other-takes.js";
import { type ItemName, placed } from "../../job/orders/review.js";
import type { RecordedDecision } from "../../run/receipts/receipt-lines.js";
import { openReceipts } from "../../run/receipts/receipts.js";
import type { Store } from "../../store/workspace/workspace.js";
import { terminalText } from "../../text/terminal.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { withStore } from "../../workspace/state.js";
import { type LostPick, lostPicks, pickedItems, rowInWorkspace } from "../../workspace/takes/lost-picks.js";
import type { Workspace } from "../../workspace/workspace.js";
import { pathOf } from "./find.js";

/**
 * Picks are the marks by which a person chooses among the results. Only export and gallery read them. Items are picked
 * for their files, so only archived items can be picked. Usually a row has one pick, so a new pick replaces the row's
 * others.
 */

export interface PickOptions {
  workspace: Workspace;
  clock: Clock;
  /** Row ids, paths of files, or task ids. */
  names: readonly ItemName[];
  /** Paths of files start from here. */
  cwd: string;
  /** Picks of the same row stay. */
  also: boolean;
  /** Removes the marks. */
  undo: boolean;
}

/** What became of a named item. */
export interface Picked {
  rowId: string;
  /** Whether it had the mark before. */
  before: boolean;
  /** Items of its row that lost the mark to it. */
  insteadOf: readonly string[];
  /** What was made of another take of its row, and how it is made of this one, for people; null if nothing was. */
  note: string | null;
}

/** Marks the items, all or none. Works while a run is in progress. Throws EarlyExit. */
export async function pickItems(options: PickOptions): Promise<Picked[]> {
  const { workspace, clock, names, cwd, also, undo } = options;
  mustHaveRuns(workspace);
  return withStore(workspace, clock, async (store) => {
    const named = new Map<number, Item>();
    for (const name of names) {
      const item = await itemNamed(store, name, cwd);
      if (!undo) mustBeArchived(item, name);
      named.set(item.id, item);
    }
    const items = [...named.values()];
    const before = await pickedItems(store);
    const had = new Set(before.map(({ id }) => id));
    const others = new Map<string, Item[]>();
    for (const other of undo || also ? [] : before.filter(({ id }) => !named.has(id)))
      others.set(rowInWorkspace(other), [...(others.get(rowInWorkspace(other)) ?? []), other]);
    const replaced = (item: Item) => others.get(rowInWorkspace(item)) ?? [];
    const [picked, unpicked] = undo
      ? [[], await marked(store, items, before)]
      : [items, items.flatMap(replaced)];
    await store.pick({ picked: picked.map(({ id }) => id), unpicked: unpicked.map(({ id }) => id) });
    const runs = await store.runs();
    const decided = (some: readonly Item[], decision: RecordedDecision["decision"]) =>
      some.map((item) => ({ job: jobNameOf(item, runs), key: item.key, decision }));
    await openReceipts(nodeDisk, workspace, () => clock.now()).decided([
      ...decided(unpicked, "unpicked"),
      ...decided(picked, "picked"),
    ]);
    const flags = runs.at(-1)?.options.sandbox ? " --sandbox" : "";
    const notes = new Map<number, string | null>();
    for (const item of undo ? [] : items)
      notes.set(item.id, otherTakesText(await otherTakesOf(store, [item]), flags));
    return items.map((item) => ({
      rowId: item.rowId,
      note: notes.get(item.id) ?? null,
      before: had.has(item.id) || unpicked.some((other) => rowInWorkspace(other) === rowInWorkspace(item)),
      insteadOf: replaced(item).map(({ rowId }) => rowId),
    }));
  });
}

/** The items that lose their marks. A name means the newest version of a row, and the mark may be on an earlier one. */
async function marked(store: Store, items: readonly Item[], picked: readonly Item[]): Promise<Item[]> {
  const lost = await lostPicks(store);
  return items.flatMap((item) => {
    if (picked.some(({ id }) => id === item.id)) return [item];
    return picked.filter((other) => lost.has(other.id) && rowInWorkspace(other) === rowInWorkspace(item));
  });
}

/** A picked item, for a list. */
export interface PickedItem {
  rowId: string;
  job: string;
  edition: string;
  model: string;
  prompt: string | null;
  /** Absolute paths; none while its files are lost. */
  files: readonly string[];
  /** Its row asks for something else now, or is gone; null while it is its row's. */
  lost: LostPick | null;
}

/** All picked items, in the order of the archive. Throws EarlyExit if there are no runs. */
export async function listPicks(workspace: Workspace, clock: Clock): Promise<PickedItem[]> {
  mustHaveRuns(workspace);
  return withStore(workspace, clock, async (store) => {
    const runs = await store.runs();
    const picked = await pickedItems(store);
    const files = new Map<number, string[]>(picked.map(({ id }) => [id, []]));
    for await (const page of store.archived())
      for (const output of page) files.get(output.item.id)?.push(pathOf(output));
    const lost = await lostPicks(store);
    return picked.map((item) => ({
      rowId: item.rowId,
      job: jobNameOf(item, runs),
      edition: item.edition,
      model: item.model,
      prompt: item.prompt,
      files: files.get(item.id) ?? [],
      lost: lost.get(item.id) ?? null,
    }));
  });
}

/** Refuses to write an export or a page without anything on it. */
export function nothingPicked(where: string, sandbox: boolean, lost: string | null): EarlyExit {
  return new EarlyExit(
    "usage",
    `no item of ${where} is picked.${lost === null ? "" : ` ${lost}.`} Pick with \`bulkgen pick ITEM${sandbox ? " --sandbox" : ""}\`. Nothing was written.`,
  );
}

function mustBeArchived({ state, rowId, note }: Item, name: ItemName): void {
  if (state === "archived" && note?.startsWith(prunedNote))
    throw new EarlyExit(
      "usage",
      placed(
        name,
        `${terminalText(rowId)} cannot be picked: ${note}. \`bulkgen redo ${terminalText(rowId)}\` makes a new one. Nothing was changed.`,
      ),
    );
  if (state === "archived") return;
  throw new EarlyExit(
    "usage",
    placed(
      name,
      `${terminalText(rowId)} is ${state}, and only archived items can be picked. Nothing was changed.`,
    ),
  );
}

function jobNameOf({ jobId }: Item, runs: readonly Run[]): string {
  return runs.find((run) => run.jobId === jobId)?.jobName ?? "";
}
