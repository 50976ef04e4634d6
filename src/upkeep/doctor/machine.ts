import { existsSync, mkdtempSync, rmdirSync, rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { bucketRefusal } from "../../archive/copies.js";
import { BucketError } from "../../bucket/bucket.js";
import type { Clock } from "../../clock.js";
import type { CheckState } from "../../documents/service.js";
import { madeWritable, openDatabase, refuseDamaged, wayOut } from "../../store/open.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { Environment } from "../../text/environment.js";
import {
  forgottenPayment,
  isRehearsal,
  lostHistory,
  movedTo,
  newerOrRebuild,
  outdatedHistory,
} from "../../workspace/history.js";
import { claimedBy, readIdentity } from "../../workspace/identity.js";
import { archiveBucket, bucketNamed } from "../../workspace/outputs-place.js";
import { isReadOnly, loggedWorkspace, openSharedData, withStore } from "../../workspace/state.js";
import { filesystemInfo, nearest, tryLock } from "../../workspace/state-folder/filesystem.js";
import type { Workspace } from "../../workspace/workspace.js";
import { sharedElsewhere } from "../../workspace/workspace.js";

export interface Check {
  name: string;
  state: CheckState;
  expected: string;
  got: string;
  /** What to do about it; null if nothing. */
  todo: string | null;
  /** The exit code of a problem. */
  exit: "key" | "unreachable" | "usage" | null;
}

/** What a failed check expected and got. */
export type CheckTrouble = Pick<Check, "expected" | "got"> & { todo: string };

export function fine(name: string, expected: string, got: string): Check {
  return { name, state: "ok", expected, got, todo: null, exit: null };
}

export function warning(name: string, trouble: CheckTrouble): Check {
  return { name, state: "warning", ...trouble, exit: null };
}

export function problem(
  name: string,
  trouble: CheckTrouble,
  exit: "key" | "unreachable" | "usage" = "usage",
): Check {
  return { name, state: "problem", ...trouble, exit };
}

/** A check that could not be made, and why. */
export function unchecked(name: string, expected: string, why: string): Check {
  return { name, state: "not checked", expected, got: why, todo: null, exit: null };
}

/** Free bytes below which the next videos may not fit, and below which a run stops at once. */
const scarceBytes = 2_000_000_000;
const fullBytes = 50_000_000;

/** A scratch folder inside the nearest existing one; or why it cannot be made. */
function scratchFolder(
  folder: string,
): { path: string; at: string } | { path: null; at: string; reason: string } {
  const at = nearest(folder);
  try {
    return { path: mkdtempSync(join(at, ".bulkgen-doctor-")), at };
  } catch (error) {
    return { path: null, at, reason: codeOf(error) };
  }
}

/** What to do about a state folder, by the code of the system's refusal. */
function writableState(code: string): string {
  return `${madeWritable(code, "it")}, or name another workspace with --workspace`;
}

/** Where the state is or will be, and why. */
export function placeOfState(workspace: Workspace, mounts: string | null): Check {
  const { root, markerFolder, sharedFolder, stateFile } = workspace;
  const expected = "a local disk that no program syncs";
  const identity = readIdentity(markerFolder);
  if (identity?.state) {
    return fine(
      "file system",
      expected,
      `the state is in ${dirname(stateFile)}: ${root} is on ${identity.why}`,
    );
  }
  const { path, type, trouble } = filesystemInfo(dirname(stateFile), mounts);
  if (trouble === null) {
    return type === null
      ? unchecked(
          "file system",
          expected,
          `${path}: unknown on this system; the name is not that of a synced folder`,
        )
      : fine("file system", expected, `${type} at ${path}`);
  }
  const elsewhere = filesystemInfo(sharedFolder, mounts).trouble;
  if (elsewhere === null) {
    return fine(
      "file system",
      expected,
      `${path} is on ${trouble}; the state will be kept in ${sharedFolder}`,
    );
  }
  return warning("file system", {
    expected,
    got: `${path} on ${trouble}, and ${sharedFolder} on ${elsewhere}`,
    todo: "name a folder on a local disk with --workspace, or in XDG_STATE_HOME; --out may stay where it is",
  });
}

/** Whether this workspace is a copy of another. */
function onlyOne(workspace: Workspace): Check {
  const expected = "no copy of another workspace";
  const identity = readIdentity(workspace.markerFolder);
  const other = identity && claimedBy(identity.id, workspace);
  if (!other) return fine("copy", expected, "none");
  const todo =
    "use the original, or run `bulkgen doctor --separate`: then each of them pays for the items not submitted yet";
  return problem("copy", { expected, got: `of ${other}`, todo });
}

function writable(folder: string): Check {
  const expected = "a writable output folder";
  const code = refusalToWrite(folder);
  if (code === null)
    return fine("output folder", expected, existsSync(folder) ? folder : `${folder} (will be created)`);
  const todo = `${madeWritable(code, "it")}, or name another with --out`;
  return problem("output folder", { expected, got: `${code} in ${nearest(folder)}`, todo });
}

/** Why a folder, or the nearest above it that exists, cannot be written to; null if it can. */
function refusalToWrite(folder: string): string | null {
  try {
    rmdirSync(mkdtempSync(join(nearest(folder), ".bulkgen-doctor-")));
    return null;
  } catch (error) {
    return codeOf(error);
  }
}

async function diskSpace(folder: string): Promise<Check> {
  const expected = `${gigabytes(scarceBytes)} free`;
  try {
    const { bavail, bsize } = await statfs(nearest(folder));
    const free = bavail * bsize;
    const got = `${gigabytes(free)} free for ${folder}`;
    const trouble = { expected, got, todo: "free some space, or name another folder with --out" };
    if (free < fullBytes) return problem("disk space", trouble);
    return free < scarceBytes ? warning("disk space", trouble) : fine("disk space", expected, got);
  } catch (error) {
    return unchecked("disk space", expected, `free space unknown (${codeOf(error)})`);
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
}

const rebuild = "it records what was paid for: restore it from a backup, or run `bulkgen doctor --rebuild`";
const restore = "set BULKGEN_DATABASE_URL to that address; if the database is lost, restore it from a backup";

/** Whether the history exists, is readable, and is the newest. What to do otherwise depends on the reason. */
async function history(workspace: Workspace, clock: Clock): Promise<Check> {
  const { stateFile } = workspace;
  const expected = "a readable history, or none yet";
  const lost = lostHistory(workspace);
  const onServer = workspace.database !== null || movedTo(workspace) !== null;
  const remedy = onServer ? restore : rebuild;
  const unusable = (why: string) => `none that can be used: ${why}`;
  if (lost !== null) return problem("history", { expected, got: unusable(lost), todo: remedy });
  if (workspace.database === null && !existsSync(stateFile)) return fine("history", expected, "none yet");
  try {
    if (workspace.database === null) refuseDamaged(stateFile);
    return await withStore(workspace, clock, async (store) => {
      const outdated = await outdatedHistory(workspace, store);
      if (outdated !== null) return problem("history", { expected, got: unusable(outdated), todo: remedy });
      const forgotten = await forgottenBy(workspace, store, clock);
      if (forgotten !== null)
        return problem("history", { expected, got: unusable(forgotten), todo: newerOrRebuild });
      const where = workspace.database?.shown ?? stateFile;
      return (await withoutReceipts(workspace, store)) ?? fine("history", expected, where);
    });
  } catch (error) {
    const todo = wayOut(error) ?? systemTodo(error) ?? remedy;
    return problem("history", { expected, got: (error as Error).message, todo });
  }
}

/** What the history does not know of the spend log; null if it knows everything, or if there is no spend log to read. */
async function forgottenBy(workspace: Workspace, store: Store, clock: Clock): Promise<string | null> {
  if (workspace.database === null && !existsSync(workspace.accountsFile)) return null;
  // The check of the accounts says why they cannot be read.
  const accounts = await openSharedData(workspace, clock).catch(() => null);
  if (accounts === null) return null;
  try {
    // The newest payment of a workspace does not depend on the key.
    const spendLog = accounts.spendLog({
      origin: "",
      fingerprint: "",
      workspace: loggedWorkspace(workspace).name,
    });
    return await forgottenPayment(workspace, store, spendLog).catch(() => null);
  } finally {
    await accounts.close();
  }
}

/** A history whose receipts are missing; null if they exist or nothing was paid. */
async function withoutReceipts(workspace: Workspace, store: Store): Promise<Check | null> {
  const { stateFile, receiptsFile } = workspace;
  const there = (statSync(receiptsFile, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (there || isRehearsal(workspace) || !(await hasPaid(store))) return null;
  return warning("history", {
    expected: "a history, and its receipts beside it",
    got: `${receiptsFile} is missing: only ${stateFile} records what was paid for. If it is damaged, only the archive can be restored`,
    todo: "restore it from a backup; without a backup, keep a copy of the database and do not rebuild it. The next run starts new receipts",
  });
}

async function hasPaid(store: Store): Promise<boolean> {
  for (const run of await store.runs()) {
    const { charged, pending } = await store.spending(run.id);
    if (charged > 0 || pending > 0) return true;
  }
  return false;
}

/** What to do when the system refused access to a file of the history; null for other errors. */
function systemTodo(error: unknown): string | null {
  const { syscall, code, path } = error as NodeJS.ErrnoException;
  return syscall === undefined ? null : madeWritable(code, path ?? "its folder");
}

export interface MachineOptions {
  workspace: Workspace;
  /** How buckets are reached. */
  environment: Environment;
  clock: Clock;
  /** Version of the running Node, without the `v`. */
  node: string;
  mounts: string | null;
  /** Replaces the test of locks. */
  locks?: ((folder: string) => string | null) | undefined;
}

/** The oldest Node that bulkgen runs on. */
const oldestNode = [20, 19] as const;

/** Checks this machine and its folders. Leaves nothing behind. */
export async function examineMachine(options: MachineOptions): Promise<Check[]> {
  const { workspace, clock, node, mounts, locks = tryLock } = options;
  const stateFolder = dirname(workspace.stateFile);
  const scratch = scratchFolder(stateFolder);
  try {
    return [
      nodeVersion(node),
      ...(scratch.path === null
        ? [
            problem("state folder", {
              expected: "a writable folder",
              got: `${scratch.reason} in ${scratch.at}`,
              todo: writableState(scratch.reason),
            }),
            unchecked("SQLite", "", "no folder to test in"),
            unchecked("lock", "", "no folder to test in"),
          ]
        : [placeOfState(workspace, mounts), sqlite(scratch.path), lock(scratch.path, locks)]),
      onlyOne(workspace),
      await history(workspace, clock),
      await accountsData(workspace, clock),
      writable(workspace.outFolder),
      await diskSpace(workspace.outFolder),
      ...(await bucketOfLatest(options)),
    ];
  } finally {
    if (scratch.path !== null) rmSync(scratch.path, { recursive: true, force: true });
  }
}

/** Whether the bucket of the latest run's files answers; no check if the run has none. */
async function bucketOfLatest({ workspace, clock, environment }: MachineOptions): Promise<Check[]> {
  if (workspace.database === null && !existsSync(workspace.stateFile)) return [];
  const latest = async (store: Store) => (await store.runs()).at(-1);
  // The check of the history has said why.
  const run = await withStore(workspace, clock, latest).catch(() => undefined);
  const name = run === undefined ? null : archiveBucket(run.options);
  if (run === undefined || name === null) return [];
  const expected = `a bucket that can be read, as run ${run.id} keeps its files there`;
  try {
    const refusal = await bucketRefusal(bucketNamed(name, environment));
    if (refusal !== null) throw new BucketError(refusal.reason);
    return [fine("bucket", expected, name)];
  } catch (error) {
    if (!(error instanceof BucketError)) throw error;
    const todo = "do what it says; until then runs and `bulkgen verify` end with exit 2";
    return [problem("bucket", { expected, got: error.message, todo })];
  }
}

function nodeVersion(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const expected = `${oldestNode.join(".")} or newer`;
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])
    ? fine("Node", expected, version)
    : problem("Node", { expected, got: version, todo: "install a newer Node" });
}

/** Opens a database like all of bulkgen's and reads its durability settings back. */
function sqlite(folder: string): Check {
  const expected = "write-ahead log, synchronous FULL";
  try {
    const db = openDatabase(join(folder, "trial.db"), [
      (fresh) => fresh.exec("CREATE TABLE opened (count INTEGER); INSERT INTO opened VALUES (0)"),
    ]);
    try {
      const version = db.prepare("SELECT sqlite_version()").pluck().get();
      const journal = db.pragma("journal_mode", { simple: true });
      const synchronous = db.pragma("synchronous", { simple: true });
      const got = `${version}, journal ${journal}, synchronous ${synchronous === 2 ? "FULL" : synchronous}`;
      if (journal === "wal" && synchronous === 2) return fine("SQLite", expected, got);
      return problem("SQLite", { expected, got, todo: "keep the workspace on a local disk" });
    } finally {
      db.close();
    }
  } catch (error) {
    const got = (error as Error).message;
    return problem("SQLite", { expected, got, todo: wayOut(error) ?? "keep the workspace on a local disk" });
  }
}

/** Another process tries the lock: without real locks, a file system refuses it only to the same process. */
function lock(folder: string, locks: (folder: string) => string | null): Check {
  const expected = "a second process is refused the lock of the first";
  const got = locks(folder);
  if (got === null) return fine("lock", expected, "refused while held, given after");
  return problem("lock", { expected, got, todo: "keep the workspace on a local disk" });
}

/** Whether the accounts' data, which all workspaces share, can be read and written. */
async function accountsData(
  { accountsFile, stateFile, database }: Pick<Workspace, "accountsFile" | "stateFile" | "database">,
  clock: Clock,
): Promise<Check> {
  const expected = "a quota ledger and a spend log that can be read, or none yet";
  if (database === null && !existsSync(accountsFile)) {
    const folder = dirname(accountsFile);
    const code = refusalToWrite(folder);
    if (code === null) return fine("accounts", expected, "none yet");
    // A rehearsal keeps it with the workspace's state.
    const todo =
      folder === dirname(stateFile)
        ? writableState(code)
        : `to keep it elsewhere from now on: ${sharedElsewhere(stateFile)}`;
    return problem("accounts", { expected, got: `${folder} cannot be made (${code})`, todo });
  }
  try {
    if (database === null) refuseDamaged(accountsFile);
    await (await openSharedData({ accountsFile, database }, clock)).close();
    if (database !== null && (await isReadOnly(database)))
      return problem("accounts", {
        expected,
        got: `${database.shown}, which takes no writes now`,
        todo: "use the server that takes writes, or wait until this one does",
      });
    return fine("accounts", expected, database?.shown ?? accountsFile);
  } catch (error) {
    const todo = wayOut(error);
    if (todo === null) throw error;
    return problem("accounts", { expected, got: (error as Error).message, todo });
  }
}
