import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import type { Clock } from "../../clock.js";
import { takeLock } from "../../store/lock.js";

/**
 * Which process has a workspace's lock. The lock itself does not say, so its owner leaves a note beside it. The note
 * alone proves nothing: a killed process leaves it behind.
 */
export interface LockOwner {
  pid: number;
  host: string;
  /** UTC ms. */
  since: number;
  /** The run that it executes; null before the run starts. */
  run: number | null;
}

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

/** The note of the process that has the lock. Failing to write it does not stop a run. */
export interface LockNote {
  /** Records which run it executes. */
  carries(run: number): void;
  /** Removes the note. */
  remove(): void;
}

/** Leaves the note; call it with the lock taken. */
export function noteLockOwner(lockFile: string, clock: Clock): LockNote {
  const path = noteOf(lockFile);
  const lockOwner: LockOwner = { pid: process.pid, host: hostname(), since: clock.now(), run: null };
  const write = (run: number | null) => {
    try {
      writeFileSync(path, JSON.stringify({ ...lockOwner, run }));
    } catch {}
  };
  write(null);
  return { carries: write, remove: () => rmSync(path, { force: true }) };
}

/**
 * The process that has the lock now, or null. The lock is tried only if there is a note: otherwise checking a free
 * workspace could briefly take the lock away from a run that is starting.
 */
export function lockOwnerOf(lockFile: string): LockOwner | null {
  let lockOwner: LockOwner;
  try {
    lockOwner = JSON.parse(readFileSync(noteOf(lockFile), "utf8")) as LockOwner;
  } catch {
    return null;
  }
  const lock = takeLock(lockFile);
  lock?.release();
  return lock === null ? lockOwner : null;
}

function noteOf(lockFile: string): string {
  return `${lockFile}.owner.json`;
}
