import { accessSync, constants, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { named, openSqlite, type Sqlite } from "../sqlite.js";

/** Held here as well as by the caller: a database that is garbage closes itself, and its lock would fall unseen. */
const held = new Set<Sqlite>();

/** A lock that the kernel frees when its process ends, however it ends. */
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

/** Takes a share of the lock at `path`: others may too, but nobody gets it whole. Null while somebody has it whole. */
export function shareLock(path: string): Lock | null {
  // What a transaction has read stays locked for others' writing until it ends.
  return locked(path, ["BEGIN", "SELECT count(*) FROM sqlite_schema"]);
}

function locked(path: string, statements: readonly string[]): Lock | null {
  mkdirSync(dirname(path), { recursive: true });
  const db = openSqlite(path, { timeout: 0 });
  try {
    db.pragma("journal_mode = DELETE");
    for (const statement of statements) db.exec(statement);
    // What may only be read SQLite opens all the same, and gives everybody a lock that keeps nobody out.
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
