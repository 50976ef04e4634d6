import { accessSync, constants, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Lanes } from "../core/quota/quota.js";
import { named, openSqlite, type Sqlite } from "../sqlite.js";

/** A lock that the kernel frees when the process ends, also after kill -9. */
export interface Lock {
  release(): void;
}

/** A reference to each lock: a garbage-collected database closes itself and would drop its lock. */
const held = new Set<LockFile>();

/**
 * Takes the lock at `path`, or returns null when another process holds it. The lock is an exclusive transaction on a
 * database of its own: SQLite asks the kernel for it, and the kernel drops it with the process, kill -9 included.
 * The file must never be opened by other means in this process, because closing it would drop the lock. Throws SQLite's
 * error, or the system's where the file may not be written.
 */
export function takeLock(path: string): Lock | null {
  const file = new LockFile(path);
  try {
    if (!file.take(exclusive)) return null;
    held.add(file);
  } finally {
    if (!held.has(file)) file.close();
  }
  return {
    release() {
      if (!held.delete(file)) return;
      file.release();
      file.close();
    },
  };
}

/** Whether a process has the lock, for a user who may only read its file. */
export function isTaken(path: string): boolean {
  const db = openSqlite(path, { readonly: true, fileMustExist: true, timeout: 0 });
  try {
    for (const statement of shared) db.exec(statement);
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw named(path, error);
  } finally {
    db.close();
  }
}

const exclusive = ["BEGIN EXCLUSIVE"];
/** Others may share it, but nobody can take it exclusively: until it ends, others cannot write what it has read. */
const shared = ["BEGIN", "SELECT count(*) FROM sqlite_schema"];

/** A lock's database, kept open so that taking the lock again costs no opening. */
class LockFile {
  private db: Sqlite | null = null;
  private isWritable = false;

  constructor(private readonly path: string) {}

  /** False while another process holds it. */
  take(statements: readonly string[]): boolean {
    this.db ??= this.open();
    const { db } = this;
    try {
      // Nothing is written, so there is nothing to roll back; else each lock would create a journal file and remove it.
      if (!this.isWritable) db.pragma("journal_mode = MEMORY");
      for (const statement of statements) db.exec(statement);
      // SQLite opens a read-only file without an error, but its lock then excludes no one.
      if (!this.isWritable) accessSync(this.path, constants.W_OK);
      this.isWritable = true;
      return true;
    } catch (error) {
      if (db.inTransaction) db.exec("ROLLBACK");
      if (isBusy(error)) return false;
      throw named(this.path, error);
    }
  }

  release(): void {
    this.db?.exec("ROLLBACK");
  }

  close(): void {
    this.db?.close();
    this.db = null;
  }

  private open(): Sqlite {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    return openSqlite(this.path, { timeout: 0 });
  }
}

function isBusy(error: unknown): boolean {
  return (error as { code?: string }).code?.startsWith("SQLITE_BUSY") ?? false;
}

export interface LaneOptions {
  /** The folder that the processes of an account share. */
  folder: string;
  /** How many lanes this process may use. */
  count: number;
  /** The file that all processes with the same key share. */
  gateFile: string;
}

/** Lanes of this process, whose files stay open until they are closed. */
export interface OpenLanes extends Lanes {
  close(): void;
}

/** Lanes as locks: one file for each lane, and one for the key, which all taken lanes of this process share. */
export function openLanes({ folder, count, gateFile }: LaneOptions): OpenLanes {
  const gate = new LockFile(gateFile);
  const lanes = Array.from({ length: count }, (_, at) => ({
    file: new LockFile(join(folder, `lane-${at + 1}.lock`)),
    isTaken: false,
  }));
  let taken = 0;
  const leave = () => {
    taken -= 1;
    if (taken === 0) gate.release();
  };
  return {
    take() {
      if (taken === 0 && !gate.take(shared)) return null;
      taken += 1;
      try {
        const lane = lanes.find(({ file, isTaken }) => !isTaken && file.take(exclusive));
        if (lane) {
          lane.isTaken = true;
          return {
            release() {
              if (!lane.isTaken) return;
              lane.isTaken = false;
              lane.file.release();
              leave();
            },
          };
        }
      } catch (error) {
        leave();
        throw error;
      }
      leave();
      return null;
    },
    bracket: () => takeLock(gateFile),
    close() {
      for (const { file } of lanes) file.close();
      gate.close();
    },
  };
}
