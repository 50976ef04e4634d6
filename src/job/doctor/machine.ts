import { existsSync, mkdtempSync, rmdirSync, rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../../clock.js";
import type { Store } from "../../core/ports/store.js";
import { openAccounts } from "../../store/accounts/accounts.js";
import { openDatabase, wayOut } from "../../store/open.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { type Filesystem, filesystemInfo, nearest, tryLockElsewhere } from "../place/filesystem.js";
import { isRehearsal, lostHistory, outdatedHistory } from "../workspace/history.js";
import { madeWritable } from "../workspace/open.js";
import { claimedBy, readIdentity, type Workspace } from "../workspace/workspace.js";

/** One thing that was looked at. */
export interface Check {
  name: string;
  state: "ok" | "warning" | "problem" | "not checked";
  expected: string;
  got: string;
  /** What to do about it; null where there is nothing to do. */
  todo: string | null;
  /** The exit that a problem leads to. */
  exit: "key" | "unreachable" | "usage" | null;
}

/** What is wrong with one thing, in the words of its check. */
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

/** Something that could not be looked at, and why. */
export function unchecked(name: string, expected: string, why: string): Check {
  return { name, state: "not checked", expected, got: why, todo: null, exit: null };
}

/** Free bytes below which the next films may not fit, and below which a run stops at once. */
const scarceBytes = 2_000_000_000;
const fullBytes = 50_000_000;

/** A folder of its own inside the nearest existing one, to try things in; or why there is none. */
export function scratchFolder(
  folder: string,
): { path: string; at: string } | { path: null; at: string; reason: string } {
  const at = nearest(folder);
  try {
    return { path: mkdtempSync(join(at, ".bulkgen-doctor-")), at };
  } catch (error) {
    return { path: null, at, reason: codeOf(error) };
  }
}

/** Where the state lies or will lie, and why. */
export function placeOfState(workspace: Workspace, ground: Filesystem): Check {
  const { root, markerFolder, sharedFolder, stateFile } = workspace;
  const expected = "a local disk that no program syncs";
  const identity = readIdentity(markerFolder);
  if (identity?.state) {
    return fine(
      "file system",
      expected,
      `the state lies in ${dirname(stateFile)}: ${root} is on ${identity.why}`,
    );
  }
  const { path, type, trouble } = filesystemInfo(dirname(stateFile), ground);
  if (trouble === null) {
    return type === null
      ? unchecked("file system", expected, `${path}: this system does not tell; no synced folder by its name`)
      : fine("file system", expected, `${type} at ${path}`);
  }
  const elsewhere = filesystemInfo(sharedFolder, ground).trouble;
  if (elsewhere === null) {
    return fine("file system", expected, `${path} is on ${trouble}; the state will lie in ${sharedFolder}`);
  }
  return warning("file system", {
    expected,
    got: `${path} on ${trouble}, and ${sharedFolder} on ${elsewhere}`,
    todo: "name a folder on a local disk with --workspace, or in XDG_STATE_HOME; --out may stay where it is",
  });
}

/** Whether this folder is the only one that is this workspace. */
export function onlyOne(workspace: Workspace): Check {
  const expected = "no copy of another workspace";
  const identity = readIdentity(workspace.markerFolder);
  const other = identity && claimedBy(identity.id, workspace);
  if (!other) return fine("copy", expected, "none");
  const todo =
    "go on there, or `bulkgen doctor --separate`: then both pay for what neither has submitted yet";
  return problem("copy", { expected, got: `of ${other}`, todo });
}

/** Whether files can be made where the outputs go. */
export function writable(folder: string): Check {
  const expected = "an output folder that can be written";
  const at = nearest(folder);
  try {
    rmdirSync(mkdtempSync(join(at, ".bulkgen-doctor-")));
    return fine("output folder", expected, existsSync(folder) ? folder : `${folder}, which will be made`);
  } catch (error) {
    const todo = "make it writable, or name another with --out";
    return problem("output folder", { expected, got: `${codeOf(error)} in ${at}`, todo });
  }
}

export async function diskSpace(folder: string): Promise<Check> {
  const expected = `${gigabytes(scarceBytes)} free`;
  try {
    const { bavail, bsize } = await statfs(nearest(folder));
    const free = bavail * bsize;
    const got = `${gigabytes(free)} free for ${folder}`;
    const trouble = { expected, got, todo: "free some space, or name another folder with --out" };
    if (free < fullBytes) return problem("disk space", trouble);
    return free < scarceBytes ? warning("disk space", trouble) : fine("disk space", expected, got);
  } catch (error) {
    return unchecked("disk space", expected, `the system does not tell (${codeOf(error)})`);
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
}

const rebuild = "restore it from a backup, or `bulkgen doctor --rebuild`; it knows what was paid for";

/** Whether the history is there, can be read, and is the newest. What to do where not depends on why. */
export async function history(workspace: Workspace, clock: Clock): Promise<Check> {
  const { stateFile } = workspace;
  const expected = "a history that can be read, or none yet";
  const lost = lostHistory(workspace);
  if (lost !== null) return problem("history", { expected, got: lost, todo: rebuild });
  if (!existsSync(stateFile)) return fine("history", expected, "none yet");
  try {
    const store = openWorkspace(workspace, clock);
    try {
      const outdated = await outdatedHistory(workspace, store);
      if (outdated !== null) return problem("history", { expected, got: outdated, todo: rebuild });
      return (await withoutReceipts(workspace, store)) ?? fine("history", expected, stateFile);
    } finally {
      store.close();
    }
  } catch (error) {
    const todo = wayOut(error) ?? systemTodo(error) ?? rebuild;
    return problem("history", { expected, got: (error as Error).message, todo });
  }
}

/** A whole history whose second memory is gone; null where it is there, or there is nothing to remember. */
async function withoutReceipts(workspace: Workspace, store: Store): Promise<Check | null> {
  const { stateFile, receiptsFile } = workspace;
  const there = (statSync(receiptsFile, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (there || isRehearsal(workspace) || !(await hasPaid(store))) return null;
  return warning("history", {
    expected: "a history, and its receipts beside it",
    got: `${receiptsFile} is missing: only ${stateFile} knows what was paid for, and if it were damaged, nothing but what is in the archive would come back`,
    todo: "restore it from a backup; where there is none, keep a copy of the database, and do not rebuild that while it is whole. The next run begins new receipts",
  });
}

async function hasPaid(store: Store): Promise<boolean> {
  for (const run of await store.runs()) {
    if ((await store.items(run.id)).some((item) => item.attempted)) return true;
  }
  return false;
}

/** What to do where the system refused a file of the history; null where it was something else. */
function systemTodo(error: unknown): string | null {
  const { syscall, code, path } = error as NodeJS.ErrnoException;
  return syscall === undefined ? null : madeWritable(code, path ?? "its folder");
}

export interface MachineOptions {
  workspace: Workspace;
  clock: Clock;
  /** Version of the running Node, without the `v`. */
  node: string;
  ground: Filesystem;
}

/** The oldest Node that bulkgen runs on. */
const oldestNode = [20, 19] as const;

/** What has to be true of this machine and its folders. Leaves nothing behind. */
export async function examineMachine({ workspace, clock, node, ground }: MachineOptions): Promise<Check[]> {
  const stateFolder = dirname(workspace.stateFile);
  const scratch = scratchFolder(stateFolder);
  try {
    return [
      nodeVersion(node),
      ...(scratch.path === null
        ? [
            problem("state folder", {
              expected: "a folder that can be written",
              got: `${scratch.reason} in ${scratch.at}`,
              todo: "make it writable, or name another workspace with --workspace",
            }),
            unchecked("SQLite", "", "there is no folder to try it in"),
            unchecked("lock", "", "there is no folder to try it in"),
          ]
        : [placeOfState(workspace, ground), sqlite(scratch.path), lock(scratch.path)]),
      onlyOne(workspace),
      await history(workspace, clock),
      accountsData(workspace.accountsFile, clock),
      writable(workspace.outFolder),
      await diskSpace(workspace.outFolder),
    ];
  } finally {
    if (scratch.path !== null) rmSync(scratch.path, { recursive: true, force: true });
  }
}

function nodeVersion(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const expected = `${oldestNode.join(".")} or newer`;
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])
    ? fine("Node", expected, version)
    : problem("Node", { expected, got: version, todo: "install a newer Node" });
}

/** A database as all of bulkgen's are opened, with what makes it durable read back from it. */
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
    return problem("SQLite", { expected, got, todo: "keep the workspace on a local disk" });
  }
}

/** Tried by another process, because a file system without real locks refuses nothing to anybody else. */
function lock(folder: string): Check {
  const expected = "a second process is refused the lock of the first";
  const got = tryLockElsewhere(folder);
  if (got === null) return fine("lock", expected, "refused while held, given after");
  return problem("lock", { expected, got, todo: "keep the workspace on a local disk" });
}

/** Whether what accounts share, in a database beside no workspace, can be read and written. */
export function accountsData(accountsFile: string, clock: Clock): Check {
  const expected = "a request ledger and books that can be read, or none yet";
  if (!existsSync(accountsFile)) return fine("accounts", expected, "none yet");
  try {
    openAccounts(accountsFile, clock).close();
    return fine("accounts", expected, accountsFile);
  } catch (error) {
    const todo = wayOut(error);
    if (todo === null) throw error;
    return problem("accounts", { expected, got: (error as Error).message, todo });
  }
}
