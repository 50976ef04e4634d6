import { accessSync, constants, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Lanes } from "../core/quota/quota.js";
import { named, openSqlite, type Sqlite } from "../sqlite.js";

/** A reference to each lock: a garbage-collected database closes itself and would drop its lock. */
const held = new Set<Sqlite>();

/** A lock that the kernel frees when the process ends, also after kill -9. */
export interface Lock {
  release(): void;
}

/**
 * Takes the lock at `path`, or returns null when another process holds it. The lock is an exclusive transaction on a
 * database of its own: SQLite asks the kernel for it, and the kernel drops it with the process, kill -9 included.
 * The file must never be opened by other means in this process, because closing it would drop the lock. Throws SQLite's
 * error, or the system's where the file may not be written.
 */
export function takeLock(path: string): Lock | null {
  return locked(path, ["BEGIN EXCLUSIVE"]);
}

/** Takes a shared lock at `path`: others may share it, but no one can take it exclusively. Null while it is exclusive. */
export function shareLock(path: string): Lock | null {
  // Until this transaction ends, others cannot write what it has read.
  return locked(path, ["BEGIN", "SELECT count(*) FROM sqlite_schema"]);
}

function locked(path: string, statements: readonly string[]): Lock | null {
  mkdirSync(dirname(path), { recursive: true });
  const db = openSqlite(path, { timeout: 0 });
  try {
    db.pragma("journal_mode = DELETE");
    for (const statement of statements) db.exec(statement);
    // SQLite opens a read-only file without an error, but its lock then excludes no one.
    accessSync(path, constants.W_OK);
  } catch (error) {
    db.close();
    if ((error as { code?: string }).code?.startsWith("SQLITE_BUSY")) return null;
    throw named(path, error);
  }
  held.add(db);
  return {
    release() {
      if (!held.delete(db)) return;
      db.exec("ROLLBACK");
      db.close();
    },
  };
}

export interface LaneOptions {
  /** The folder that the processes of an account share. */
  folder: string;
  /** How many lanes this process may use. */
  count: number;
  /** The file that all processes with the same key share. */
  gateFile: string;
}

/** Lanes as locks: one file for each lane, and one for the key, on which each taken lane holds a shared lock. */
export function openLanes({ folder, count, gateFile }: LaneOptions): Lanes {
  return {
    take() {
      const gate = shareLock(gateFile);
      if (!gate) return null;
      for (let number = 1; number <= count; number++) {
        const lane = takeLock(join(folder, `lane-${number}.lock`));
        if (!lane) continue;
        return {
          release() {
            lane.release();
            gate.release();
          },
        };
      }
      gate.release();
      return null;
    },
    bracket: () => takeLock(gateFile),
  };
}
