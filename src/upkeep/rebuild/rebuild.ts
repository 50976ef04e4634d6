import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import { takeLock } from "../../store/lock.js";
import { isRefused, NewerDatabase, refuseDamaged, wayOut } from "../../store/open.js";
import { makeWorkspace } from "../../store/workspace/workspace.js";
import { isRehearsal } from "../../workspace/history.js";
import { readIdentity, writeIdentity } from "../../workspace/identity.js";
import { noteLockOwner } from "../../workspace/lock.js";
import { withStore } from "../../workspace/state.js";
import { refuseCopy } from "../../workspace/state-folder/state-folder.js";
import type { Workspace } from "../../workspace/workspace.js";
import {
  type ArchiveHistory,
  type FoundItem,
  type FoundItems,
  findItems,
  type ReceiptHistory,
  readArchive,
  readReceiptHistory,
} from "./rebuild-items.js";
import { openVerdicts, refill } from "./rebuild-store.js";

export interface RebuildOptions {
  workspace: Workspace;
  clock: Clock;
  /** Asks for consent, given what would be restored; false changes nothing. */
  consent(offer: RebuildOffer): Promise<boolean>;
}

export interface RebuildOffer extends Pick<Rebuilt, "database" | "found" | "readable"> {
  /** Whether there is a database, intact or not. */
  present: boolean;
}

/**
 * Rebuilds the workspace's database from its receipts and its archive. The old database is kept beside it. Throws EarlyExit.
 */
export async function rebuildWorkspace({ workspace, clock, consent }: RebuildOptions): Promise<Rebuilt> {
  const { stateFile, lockFile, markerFolder } = workspace;
  const identity = readIdentity(markerFolder);
  if (identity) refuseCopy(workspace, identity);
  if (!existsSync(workspace.root)) throw new EarlyExit("usage", `no workspace in ${workspace.root}`);
  const made = [markerFolder, dirname(stateFile)].find((folder) => !existsSync(folder));
  const lock = takeLock(lockFile);
  if (!lock)
    throw new EarlyExit("locked", `a run is using the workspace ${workspace.root}; nothing was changed`);
  const note = noteLockOwner(lockFile, clock);
  try {
    const readable = await itemsKnown(workspace, clock);
    const sources = await readSources(workspace);
    if (sources.items.length === 0) {
      throw new EarlyExit(
        "usage",
        `nothing to rebuild from: ${workspace.receiptsFile} and the archive in ${workspace.outFolder} have no items; nothing was changed`,
      );
    }
    const offer = { database: stateFile, present: existsSync(stateFile), readable };
    if (!(await consent({ ...offer, found: sources.items.length }))) {
      throw new EarlyExit("usage", "not confirmed; nothing was changed");
    }
    const rebuilt = `${stateFile}.rebuilt`;
    rmSync(rebuilt, { force: true });
    mkdirSync(dirname(stateFile), { recursive: true });
    const verdicts = openVerdicts(workspace, clock);
    try {
      const context = { clock, unsaid: unsaidIn(workspace, sources), verdicts };
      await makeWorkspace({ ...workspace, stateFile: rebuilt }, clock, (store, restore) =>
        refill({ store, restore }, sources.items, context),
      );
    } finally {
      await verdicts.close();
    }
    const kept = putAside(stateFile, clock);
    renameSync(rebuilt, stateFile);
    if (identity?.state) writeIdentity(markerFolder, { ...identity, host: hostname() });
    return { ...(await factsOf(workspace, clock, sources)), readable, kept };
  } finally {
    note.remove();
    lock.release();
    // An empty state folder would look as if the state were not lost.
    if (made !== undefined && !existsSync(stateFile)) rmSync(made, { recursive: true });
  }
}

interface Sources extends FoundItems {
  receipts: ReceiptHistory;
  archive: ArchiveHistory;
}

async function readSources(workspace: Workspace): Promise<Sources> {
  const { outFolder } = workspace;
  const receipts = readReceiptHistory(workspace);
  const named = receipts.attempts.flatMap(({ intent }) => intent?.out ?? []);
  const archive = await readArchive([...new Set([outFolder, ...named])]);
  return { receipts, archive, ...findItems(receipts, archive) };
}

function unsaidIn({ root, outFolder, ...rest }: Workspace, { items }: FoundItems) {
  const { intent } = items.find((found) => found.intent) ?? ({} as Partial<FoundItem>);
  return {
    origin: intent?.origin ?? "",
    accountId: intent?.account ?? "",
    outFolder,
    manifestFolder: root,
    sandbox: isRehearsal({ root, outFolder, ...rest }),
  };
}

/**
 * How many items the old database has; null when it is missing or damaged. Throws NewerDatabase, and EarlyExit for a
 * database that cannot be opened but may be intact.
 */
async function itemsKnown(workspace: Workspace, clock: Clock): Promise<number | null> {
  if (!existsSync(workspace.stateFile)) return null;
  try {
    const counts = await withStore(workspace, clock, (store) => {
      refuseDamaged(workspace.stateFile);
      return store.countAll();
    });
    return Object.values(counts).reduce((sum, items) => sum + items, 0);
  } catch (error) {
    if (error instanceof NewerDatabase) throw error;
    if (isRefused(error)) {
      const why = `${(error as Error).message}. It may be intact, so it is not replaced`;
      throw new EarlyExit("usage", `${why}: ${wayOut(error)}. Nothing was changed.`);
    }
    return null;
  }
}

/** Renames the old database and its write-ahead log. Null when there is none. */
function putAside(stateFile: string, clock: Clock): string | null {
  const stamp = new Date(clock.now()).toISOString().replaceAll(":", "-");
  const kept = `${stateFile}.before-${stamp}`;
  for (const end of ["-wal", "-shm", ""]) {
    if (existsSync(stateFile + end)) renameSync(stateFile + end, kept + end);
  }
  return existsSync(kept) ? kept : null;
}

async function factsOf(
  workspace: Workspace,
  clock: Clock,
  { items, receipts, archive, orphans }: Sources,
): Promise<Omit<Rebuilt, "readable" | "kept">> {
  return withStore(workspace, clock, async (store) => {
    const owing = (await store.runs()).filter((run) => run.owes).map((run) => run.id);
    return {
      database: workspace.stateFile,
      found: items.length,
      counts: await store.countAll(),
      owing,
      orphans,
      decisions: {
        picks: items.filter(({ decided }) => decided.picked).length,
        approvals: items.filter(({ decided }) => decided.approval !== null).length,
      },
      receipts: { lines: receipts.lines, unreadable: receipts.unreadable },
      archive: {
        indexes: archive.indexes,
        missing: archive.missing.map(({ folder, file }) => join(folder, file)),
      },
    };
  });
}

/** What a rebuild restored, and what it could not. */
export interface Rebuilt {
  database: string;
  /** Restored items. */
  found: number;
  counts: Readonly<Record<ItemState, number>>;
  /** Numbers of the runs that have something to collect. */
  owing: readonly number[];
  receipts: { lines: number; unreadable: readonly number[] };
  archive: { indexes: number; missing: readonly string[] };
  /** How many items are picked, and how many approved or rejected, as the receipts have it. */
  decisions: { picks: number; approvals: number };
  /** Paid tasks whose requests can no longer be read. */
  orphans: readonly string[];
  /** Items of the old database; null if it could not be read. */
  readable: number | null;
  /** The old database; null if there was none. */
  kept: string | null;
}
