import { closeSync, constants, ftruncateSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import type { Clock } from "../clock.js";
import type { Reason } from "../core/reason.js";
import { isTaken, type Lock, takeLock } from "../store/lock.js";
import type { Store } from "../store/workspace/workspace.js";
import { openStore } from "./state.js";
import type { Workspace } from "./workspace.js";

/** Which process has a workspace's lock. */
export interface LockOwner {
  pid: number;
  host: string;
  /** UTC ms. */
  since: number;
  /** The run that it executes; null before the run starts. */
  run: number | null;
  /** Why the run waits, if it does; where the state is in a database, without its circumstances. */
  reason?: Reason | null;
  /** How long it expects all of the run to take, if that is no longer what was planned (ms). */
  forecastMs?: number | null;
}

/** What a run says of itself while it is in progress. */
export type RunNote = Required<Pick<LockOwner, "reason" | "forecastMs">>;

/** Who starts a run here. */
export function whoIsHere(): { user: string; host: string } {
  return { user: userName(), host: hostname() };
}

/** A system may have no name for the user id, as in a container. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown user";
  }
}

/** The lock of a workspace, which one process has at a time, over all machines that share its state. */
export interface WorkspaceLock {
  /** Says which run this process executes. */
  carries(run: number): Promise<void>;
  /** Says why the run waits, and how long it expects to take. */
  says(note: RunNote): void;
  /** The store for what only the owner of the lock may write. Close it before the lock is released. */
  openStore(): Promise<Store>;
  release(): Promise<void>;
}

/** Null if another process has it. */
export async function takeWorkspaceLock(workspace: Workspace, clock: Clock): Promise<WorkspaceLock | null> {
  if (workspace.database !== null) return lockOnServer(workspace, workspace.database, clock);
  const lock = takeLock(workspace.lockFile);
  if (lock === null) return null;
  const note = noteLockOwner(workspace.lockFile, clock);
  return {
    carries: async (run) => note.carries(run),
    says: (said) => note.says(said),
    openStore: () => openStore(workspace, clock),
    async release() {
      note.remove();
      lock.release();
    },
  };
}

async function lockOnServer(
  { root }: Workspace,
  address: NonNullable<Workspace["database"]>,
  clock: Clock,
): Promise<WorkspaceLock | null> {
  const { lockSharedStore } = await import("../store/postgres/ports.js");
  let holder: Omit<LockOwner, "since"> = { pid: process.pid, host: hostname(), run: null };
  const locked = await lockSharedStore({ address, root, clock }, holder);
  if (locked === null) return null;
  const { store, says, release } = locked;
  return {
    async carries(run) {
      holder = { ...holder, run };
      await says(holder);
    },
    says(note) {
      holder = { ...holder, ...note };
      // A run that has lost the connection ends by itself, and says why.
      void says(holder).catch(() => undefined);
    },
    openStore: async () => store,
    release,
  };
}

/** The process that has the lock now, or null. */
export async function lockOwnerOf({
  lockFile,
  database,
}: Pick<Workspace, "lockFile" | "database">): Promise<LockOwner | null> {
  if (database === null) return fileLockOwner(lockFile);
  const { holderOf } = await import("../store/postgres/connect.js");
  return holderOf(database);
}

/**
 * A lock file does not say who has it, so its owner leaves a note beside it. The note alone proves nothing: a killed
 * process leaves it behind. The lock is tried only if there is a note: otherwise checking a free workspace could briefly
 * take the lock away from a run that is starting. So a note that was left behind is removed, while nobody can write
 * another one: a dashboard checks several times a second.
 */
export function fileLockOwner(lockFile: string): LockOwner | null {
  let lockOwner: LockOwner;
  try {
    lockOwner = JSON.parse(readFileSync(noteOf(lockFile), "utf8")) as LockOwner;
  } catch {
    return null;
  }
  let lock: Lock | null;
  try {
    lock = takeLock(lockFile);
  } catch {
    return isTaken(lockFile) ? lockOwner : null;
  }
  if (lock === null) return lockOwner;
  try {
    rmSync(noteOf(lockFile), { force: true });
  } catch {
    // It is left as it is, and so is the answer.
  }
  lock.release();
  return null;
}

/** The note of the process that has a lock file. Failing to write it does not stop a run. */
export interface LockNote {
  /** Records which run it executes. */
  carries(run: number): void;
  /** Records what the run says of itself. */
  says(note: RunNote): void;
  /** Removes the note. */
  remove(): void;
}

/** Leaves the note; call it with the lock taken. */
export function noteLockOwner(lockFile: string, clock: Clock): LockNote {
  const path = noteOf(lockFile);
  let lockOwner: LockOwner = { pid: process.pid, host: hostname(), since: clock.now(), run: null };
  let file: number | null = null;
  const write = (changes: Partial<LockOwner>) => {
    lockOwner = { ...lockOwner, ...changes };
    try {
      // A link under this name would have the note written elsewhere.
      file ??= openSync(
        path,
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
      );
      ftruncateSync(file, writeSync(file, JSON.stringify(lockOwner).padEnd(noteLength), 0));
    } catch {}
  };
  write({});
  return {
    carries: (run) => write({ run }),
    says: (said) => write(said),
    remove() {
      if (file !== null) closeSync(file);
      rmSync(path, { force: true });
    },
  };
}

/** Each note is written over the last one, and is seldom longer than this: a full disk may have no room for more. */
const noteLength = 1_000;

function noteOf(lockFile: string): string {
  return `${lockFile}.owner.json`;
}
