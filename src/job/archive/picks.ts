import { nodeDisk } from "../../archive/disk/node-disk.js";
import { noteOfPruned, prunedCheck } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import type { RecordedDecision } from "../../run/receipts/receipt-lines.js";
import { openReceipts } from "../../run/receipts/receipts.js";
import { someOf } from "../../text/reasons.js";
import { terminalText } from "../../text/terminal.js";
import { itemNamed } from "../orders/item-named.js";
import { type ItemName, placed } from "../orders/review.js";
import { mustHaveRuns } from "../workspace/history.js";
import { withStore } from "../workspace/state.js";
import type { Workspace } from "../workspace/workspace.js";
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
}

/** Marks the items, all or none. Works while a run is in progress. Throws EarlyExit. */
export async function pickItems(options: PickOptions): Promise<Picked[]> {
  const { workspace, clock, names, cwd, also, undo } = options;
  mustHaveRuns(workspace);
  return withStore(workspace, clock, async (store) => {
    const named = new Map<number, Item>();
    for (const name of names) {
      const item = await itemNamed(store, name, cwd);
      if (!undo) mustBeArchived(item, name, await whenPruned(store, item));
      named.set(item.id, item);
    }
    const items = [...named.values()];
    const before = await pickedItems(store);
    const had = new Set(before.map(({ id }) => id));
    const others = new Map<string, Item[]>();
    for (const other of undo || also ? [] : before.filter(({ id }) => !named.has(id)))
      others.set(rowInWorkspace(other), [...(others.get(rowInWorkspace(other)) ?? []), other]);
    const replaced = (item: Item) => others.get(rowInWorkspace(item)) ?? [];
    const [picked, unpicked] = undo ? [[], items] : [items, items.flatMap(replaced)];
    await store.pick({ picked: picked.map(({ id }) => id), unpicked: unpicked.map(({ id }) => id) });
    const runs = await store.runs();
    const decided = (some: readonly Item[], decision: RecordedDecision["decision"]) =>
      some.map((item) => ({ job: jobNameOf(item, runs), key: item.key, decision }));
    await openReceipts(nodeDisk, workspace, () => clock.now()).decided([
      ...decided(unpicked, "unpicked"),
      ...decided(picked, "picked"),
    ]);
    return items.map((item) => ({
      rowId: item.rowId,
      before: had.has(item.id),
      insteadOf: replaced(item).map(({ rowId }) => rowId),
    }));
  });
}

/**
 * What has become of a picked item: its row asks for something else now (`replaced`), the row itself is `gone`, or its files
 * were `pruned`.
 */
export type LostPick = "replaced" | "gone" | "pruned";

/**
 * Picked items without a file, or that no row asks for any more, by number, but those whose row has another pick. Exports and
 * galleries of what is picked lack them, so everything that makes or reads picks says so with `lostPicksText`.
 */
export async function lostPicks(store: PickStore): Promise<Map<number, LostPick>> {
  const picked = await pickedItems(store);
  const current = new Set(picked.filter(({ vanished }) => !vanished).map(rowInWorkspace));
  const lost = new Map<number, LostPick>();
  for (const item of picked.filter((each) => each.vanished && !current.has(rowInWorkspace(each)))) {
    const ofRow = await store.find(rowIdOf(item));
    const isThere = ofRow.some((other) => !other.vanished && rowInWorkspace(other) === rowInWorkspace(item));
    lost.set(item.id, isThere ? "replaced" : "gone");
  }
  for (const item of picked)
    if (!item.vanished && (await whenPruned(store, item)) !== null) lost.set(item.id, "pruned");
  return lost;
}

type PickStore = Pick<Store, "picks" | "item" | "find" | "outputs">;

/** That the files of an archived item were pruned, and when; null if they were not. */
async function whenPruned(store: Pick<Store, "outputs">, { id, state, note }: Item): Promise<string | null> {
  if (state !== "archived" || note === null || !note.startsWith(noteOfPruned(prunedCheck))) return null;
  const outputs = await store.outputs(id);
  return outputs.every(({ file }) => file === null) ? note : null;
}

/**
 * Which picks of a job are lost, and what to do; null if none is. That files were pruned matters to those who read the files:
 * a run does not repeat it.
 */
export async function lostPicksText(
  store: PickStore,
  jobId: number,
  readsFiles = false,
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
    ...(pruned.length === 0 || !readsFiles
      ? []
      : [
          `${someOf(pruned)}: picked, but ${pruned.length === 1 ? "its file was" : "their files were"} pruned; \`bulkgen redo\` makes a new one`,
        ]),
  ];
  return pieces.length === 0 ? null : pieces.join(". ");
}

/** The picks of rows that a run would make anew, in words; null if there are none. */
export async function picksToReplace(
  store: Pick<Store, "picks" | "item">,
  changed: Iterable<{ rowId: string; oldKey: string }>,
): Promise<string | null> {
  const keys = new Set((await pickedItems(store)).map(({ key }) => key));
  const rows = keys.size === 0 ? [] : [...changed].filter(({ oldKey }) => keys.has(oldKey));
  if (rows.length === 0) return null;
  const files = rows.length === 1 ? "the picked file" : "the picked files";
  return `${someOf(rows.map(({ rowId }) => rowId))}: ${files} will be replaced by a new version; pick again then`;
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

/** The name that an item, its variants and their earlier versions have in common within a job. */
export function rowOf(item: Pick<Item, "edition" | "rowId" | "variant">): string {
  return JSON.stringify([item.edition, rowIdOf(item)]);
}

function rowInWorkspace(item: Item): string {
  return `${item.jobId} ${rowOf(item)}`;
}

function mustBeArchived({ state, rowId }: Item, name: ItemName, pruned: string | null): void {
  if (pruned !== null)
    throw new EarlyExit(
      "usage",
      placed(
        name,
        `${terminalText(rowId)} cannot be picked: ${pruned}. \`bulkgen redo ${terminalText(rowId)}\` makes a new one. Nothing was changed.`,
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

async function pickedItems(store: Pick<Store, "picks" | "item">): Promise<Item[]> {
  const items: Item[] = [];
  for (const id of await store.picks()) items.push(await store.item(id));
  return items;
}

function jobNameOf({ jobId }: Item, runs: readonly Run[]): string {
  return runs.find((run) => run.jobId === jobId)?.jobName ?? "";
}
