import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { indexName } from "../archive/index-file.js";
import { EarlyExit } from "../core/exit.js";
import { type IntentLine, lineIn } from "../run/receipts/receipt-lines.js";
import type { SpendLog } from "../store/accounts/spend-log.js";
import type { Store } from "../store/workspace/workspace.js";
import { count } from "../text/amounts.js";
import { LineSplitter } from "../text/pieces.js";
import { leaves } from "../text/within.js";
import { identityFile, readIdentity, writeIdentity } from "./identity.js";
import { type Workspace, workspaceExists } from "./workspace.js";

/** Why a workspace's history is unavailable although it once existed; null if it is fine or new. */
export function lostHistory(workspace: Workspace): string | null {
  const { root, markerFolder, stateFile, database } = workspace;
  // Once the database is open, the receipts show whether it is the right one and not outdated.
  if (database !== null) return null;
  const identity = readIdentity(markerFolder);
  const moved = movedTo(workspace);
  if (moved !== null)
    return `the state of ${root} is in the database ${moved} (${identityFile(markerFolder)} says so). Without it, items would be paid for again. Set BULKGEN_DATABASE_URL to that address, with its password`;
  if (identity?.state && !existsSync(identity.state)) {
    const where =
      identity.host === hostname() ? "on this machine, but it is gone" : `on the machine ${identity.host}`;
    return `the state of ${root} is kept in ${identity.state} ${where} (${identityFile(markerFolder)} says so). Without it, items would be paid for again. Run bulkgen there, or bring that folder here; if it is lost, \`bulkgen doctor --rebuild\` restores what the archive records`;
  }
  if (existsSync(stateFile) || isRehearsal(workspace)) return null;
  const left = historyLeft(workspace);
  return (
    left &&
    `the database ${stateFile} is missing, but ${left}: expected both or neither. \`bulkgen doctor --rebuild\` restores it from the receipts and the archive`
  );
}

/** What a missing database left behind; null if there never was one. */
function historyLeft({ root, markerFolder, receiptsFile, outFolder }: Workspace): string | null {
  if (existsSync(receiptsFile) && statSync(receiptsFile).size > 0)
    return `${receiptsFile} records paid requests`;
  // An --out folder may belong to another workspace, and after rehearsals only, the files may be someone else's.
  const isOwn = readIdentity(markerFolder) !== null && !leaves(root, outFolder);
  return isOwn && indexFiles(outFolder).length > 0
    ? `the archive in ${outFolder} has files that it recorded`
    : null;
}

/** The indexes of all jobs in an output folder. */
export function indexFiles(outFolder: string): string[] {
  if (!existsSync(outFolder)) return [];
  const files = readdirSync(outFolder).map((folder) => join(outFolder, folder, indexName));
  return files.filter((file) => existsSync(file));
}

/** Throws EarlyExit if there was a history that is unavailable. */
export function refuseLost(workspace: Workspace): void {
  const lost = lostHistory(workspace);
  if (lost !== null) throw new EarlyExit("usage", `${lost}. Nothing was sent.`);
}

/** Throws EarlyExit if the state of the workspace is in a database whose address this process does not have. */
export function refuseMoved(workspace: Workspace): void {
  if (movedTo(workspace) !== null) refuseLost(workspace);
}

/** The database that has the state, if this process has no address. */
export function movedTo(workspace: Workspace): string | null {
  if (workspace.database !== null || isRehearsal(workspace)) return null;
  return readIdentity(workspace.markerFolder)?.database ?? null;
}

/**
 * The folder remembers the database that has its state, so that no command starts another state here. Call this once
 * the database has answered: a mistyped address must not be remembered. `replaces`: the database is known to be the
 * right one.
 */
export function rememberDatabase(workspace: Workspace, { replaces }: { replaces: boolean }): void {
  const { markerFolder, database } = workspace;
  if (database === null || isRehearsal(workspace)) return;
  const identity = readIdentity(markerFolder);
  if (identity === null || identity.database === database.shown) return;
  if (identity.database === undefined || replaces)
    writeIdentity(markerFolder, { ...identity, database: database.shown });
}

/** Rehearsals cost nothing, so losing their history does not matter. */
export function isRehearsal({ stateFile }: Workspace): boolean {
  return basename(dirname(stateFile)) === "sandbox";
}

/** Throws EarlyExit for a workspace that was never used, or whose history is lost. */
export function mustHaveRuns(workspace: Workspace): void {
  if (workspaceExists(workspace)) return;
  refuseLost(workspace);
  throw new EarlyExit("usage", noRunsText(workspace));
}

/** How to begin, if no run is on record. */
export const howToBegin = "`bulkgen init` writes a first sheet, `bulkgen run FILE` makes what a sheet lists";

/** Says that a workspace has no runs, what it contains nevertheless, and what to do. */
export function noRunsText(workspace: Workspace): string {
  const { root, outFolder, stateFile } = workspace;
  const items = isRehearsal(workspace) ? 0 : archivedItems(outFolder);
  if (items > 0)
    return `no runs in ${root}, but outputs of ${count(items, "item")} lie in ${outFolder}. \`bulkgen doctor --rebuild\` restores their history, so that nothing is paid again`;
  const rehearsed = existsSync(join(dirname(stateFile), "sandbox", basename(stateFile)));
  if (rehearsed) return `only rehearsals in ${root} so far; add --sandbox for them`;
  return existsSync(workspace.markerFolder)
    ? `no runs in ${root} yet. ${howToBegin}`
    : `no runs in ${root}: it is not a workspace yet. If yours is elsewhere, go to its folder or name it with --workspace. To begin here, ${howToBegin}`;
}

/** The lines of a file, read piece by piece. */
export function* fileLines(path: string): Generator<string> {
  const splitter = new LineSplitter();
  const piece = new Uint8Array(1 << 20);
  const descriptor = openSync(path, "r");
  try {
    for (let bytes = readSync(descriptor, piece); bytes > 0; bytes = readSync(descriptor, piece))
      yield* splitter.take(piece.subarray(0, bytes));
    yield splitter.last();
  } finally {
    closeSync(descriptor);
  }
}

/** The items whose outputs the index files of an output folder name. */
function archivedItems(outFolder: string): number {
  const keys = new Set<unknown>();
  for (const file of indexFiles(outFolder))
    for (const line of fileLines(file)) {
      try {
        keys.add((JSON.parse(line) as { key?: unknown }).key);
      } catch {
        // The last line may be cut off, and names no item then.
      }
    }
  return keys.size;
}

/**
 * A database may exist but be outdated: restored from a copy, or left without its log after a crash. It would pay again
 * for what was paid since. A database records each paid request before the receipts do, and a rebuilt one has all that
 * can be read of them, so it must know the newest receipts: as many as may have been in flight at once.
 */
const requestsLooked = 32;
/** Bytes searched at the end of the receipts. */
const tailBytes = 1 << 20;

/** Why the database is outdated; null if it is not. */
export async function outdatedHistory(
  workspace: Workspace,
  store: Pick<Store, "attempted">,
): Promise<string | null> {
  if (isRehearsal(workspace)) return null;
  const { database, stateFile, receiptsFile, markerFolder } = workspace;
  for (const { at, row, job, key, attempt } of newestIntents(receiptsFile)) {
    if (await store.attempted(job, key, attempt)) continue;
    if (database !== null) {
      const known = readIdentity(markerFolder)?.database ?? database.shown;
      const right =
        known === database.shown ? "the database of this folder" : `the database of this folder, ${known}`;
      return `the database ${database.shown} is not the one of ${receiptsFile}, or older: it does not know the paid request of ${at} for ${row}. With it, items would be paid for again. Set BULKGEN_DATABASE_URL to ${right}, or unset it if the state is in files here`;
    }
    return `the database ${stateFile} is older than ${receiptsFile}: it does not know the paid request of ${at} for ${row}; it was restored, or lost its log. With it, items would be paid for again. Bring the newer one back, or restore it from the receipts and the archive with \`bulkgen doctor --rebuild\``;
  }
  return null;
}

/** Throws EarlyExit if the database is outdated. */
export async function refuseOutdated(workspace: Workspace, store: Pick<Store, "attempted">): Promise<void> {
  const outdated = await outdatedHistory(workspace, store);
  if (outdated !== null) throw new EarlyExit("usage", `${outdated}. Nothing was sent.`);
}

/**
 * Database and receipts may have been restored together, and then agree with each other. The spend log of this machine
 * knows what was paid since: its newest paid request after the newest run began is in the database, or that is outdated.
 * Returns what is wrong; null if nothing is.
 */
export async function forgottenPayment(
  workspace: Workspace,
  store: Pick<Store, "runs" | "attemptOfEntry">,
  spendLog: Pick<SpendLog, "newestPaid">,
): Promise<string | null> {
  if (isRehearsal(workspace)) return null;
  const runs = await store.runs();
  if (runs.length === 0) return null;
  const newest = await spendLog.newestPaid(Math.max(...runs.map(({ startedAt }) => startedAt)));
  if (newest === null || (await store.attemptOfEntry(newest.entry)) !== null) return null;
  const { stateFile, accountsFile } = workspace;
  const what = `the paid request of ${new Date(newest.sentAt).toISOString()}${newest.taskId === null ? "" : ` (task ${newest.taskId})`}`;
  return `the history in ${dirname(stateFile)} is older than ${accountsFile}: it does not know ${what}; it was restored from a copy. With it, items would be paid for again`;
}

/** What to do about a forgotten payment. */
export const newerOrRebuild =
  "bring the newer one back. Without it, `bulkgen doctor --rebuild` restores what receipts and archive have; what only the lost history had is paid for again after that";

/** Throws EarlyExit if the history does not know the newest payment. */
export async function refuseForgotten(
  ...[workspace, store, spendLog]: Parameters<typeof forgottenPayment>
): Promise<void> {
  const forgotten = await forgottenPayment(workspace, store, spendLog);
  if (forgotten === null) return;
  throw new EarlyExit("usage", `${forgotten}. Nothing was sent. To continue, ${newerOrRebuild}.`);
}

/** The last readable intents, newest first. */
function newestIntents(receiptsFile: string): IntentLine[] {
  const intents: IntentLine[] = [];
  for (const row of tailOf(receiptsFile).split("\n").toReversed()) {
    const line = lineIn(row);
    if (line?.type === "intent") intents.push(line);
    if (intents.length === requestsLooked) break;
  }
  return intents;
}

function tailOf(file: string): string {
  if (!existsSync(file)) return "";
  const fd = openSync(file, "r");
  try {
    const { size } = fstatSync(fd);
    const tail = Buffer.alloc(Math.min(size, tailBytes));
    const read = readSync(fd, tail, 0, tail.length, size - tail.length);
    return tail.toString("utf8", 0, read);
  } finally {
    closeSync(fd);
  }
}
