import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Clock } from "../../clock.js";
import { takeLock } from "../../store/lock.js";

/**
 * Who holds a workspace. The lock says whether somebody does and cannot say who, so its holder leaves a note beside
 * it. The note alone proves nothing: a killed process leaves it behind.
 */
export interface Holder {
  pid: number;
  host: string;
  /** UTC ms. */
  since: number;
  /** The run that it carries on; null before that has begun. */
  run: number | null;
}

/** The note of a process that holds the lock. A disk that refuses it is no reason to stop. */
export interface HolderNote {
  /** Says which run it carries on. */
  carries(run: number): void;
  /** Takes the note away. */
  remove(): void;
}

/** Leaves the note; call with the lock held. */
export function noteHolder(lockFile: string, clock: Clock): HolderNote {
  const path = noteOf(lockFile);
  const holder: Holder = { pid: process.pid, host: hostname(), since: clock.now(), run: null };
  const write = (run: number | null) => {
    try {
      writeFileSync(path, JSON.stringify({ ...holder, run }));
    } catch {}
  };
  write(null);
  return { carries: write, remove: () => rmSync(path, { force: true }) };
}

/**
 * The process that holds the lock now, or null. The lock is tried only where there is a note: a look at a free
 * workspace must not take it away, however shortly, from a run that starts at this moment.
 */
export function holderOf(lockFile: string): Holder | null {
  let holder: Holder;
  try {
    holder = JSON.parse(readFileSync(noteOf(lockFile), "utf8")) as Holder;
  } catch {
    return null;
  }
  const lock = takeLock(lockFile);
  lock?.release();
  return lock === null ? holder : null;
}

function noteOf(lockFile: string): string {
  return `${lockFile}.holder.json`;
}
