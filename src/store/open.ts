import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { named, openSqlite, type Sqlite, statements } from "../sqlite.js";

/** One step of a schema. Steps are never edited once released: the next change is another step. */
export type Migration = (db: Sqlite) => void;

export class NewerDatabase extends Error {
  override readonly name = "NewerDatabase";
}

/**
 * Opens a database so that what is committed survives a power loss: WAL with `synchronous=FULL`. The setting belongs
 * to the connection, and better-sqlite3's build sets another one for WAL, so it is set here at every open and read
 * back after the first write. Brings the schema up to date: one transaction, after a whole copy beside the file.
 * Throws NewerDatabase when a newer bulkgen wrote it.
 */
export function openDatabase(path: string, migrations: readonly Migration[]): Sqlite {
  if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true });
  let db: Sqlite | null = null;
  try {
    db = openSqlite(path);
    db.pragma("busy_timeout = 10000");
    if (path !== ":memory:") db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.pragma("foreign_keys = ON");
    migrate(db, path, migrations);
    db.prepare("UPDATE opened SET count = count + 1").run();
    const level = db.pragma("synchronous", { simple: true });
    if (level !== 2) throw new Error(`SQLite at ${path}: expected synchronous=2 (FULL), got ${level}`);
    return db;
  } catch (error) {
    db?.close();
    throw named(path, error);
  }
}

/** Whether it is the disk that refuses what a database writes: full, gone, or read-only. */
export function refusedByDisk(error: unknown): error is Error {
  const { code } = (error ?? {}) as { code?: unknown };
  return error instanceof Error && /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/.test(String(code));
}

function migrate(db: Sqlite, path: string, migrations: readonly Migration[]): void {
  if (schemaOf(db, path, migrations.length) === migrations.length) return;
  let backup: string | null = null;
  try {
    db.transaction(() => {
      // Another process may have migrated between our look and this lock.
      const found = schemaOf(db, path, migrations.length);
      if (found === migrations.length) return;
      if (found > 0 && path !== ":memory:") {
        backup = freeName(`${path}.schema-${found}`);
        // A second connection copies: none can within its own transaction, whose lock keeps all others from writing.
        copyDatabase(path, backup);
      }
      for (const step of migrations.slice(found)) step(db);
      db.pragma(`user_version = ${migrations.length}`);
    }).immediate();
  } catch (error) {
    // Nothing was changed; and each try would leave another copy.
    if (backup !== null) rmSync(backup, { force: true });
    throw error;
  }
}

/** The schema that the database has. Throws NewerDatabase for one that this program does not know. */
function schemaOf(db: Sqlite, path: string, newest: number): number {
  const found = db.pragma("user_version", { simple: true }) as number;
  if (found <= newest) return found;
  throw new NewerDatabase(
    `${path} was written by a newer bulkgen: expected schema ${newest} or older, got ${found}; update bulkgen`,
  );
}

/** A backup is never written over, nor taken for one of today: an older database may have been put back since. */
function freeName(stem: string): string {
  let name = `${stem}.backup`;
  for (let number = 2; existsSync(name); number++) name = `${stem}.${number}.backup`;
  return name;
}

/** Does work in a transaction that may write from its beginning, and takes it all back when the work throws. */
export type Atomic = <Result>(work: () => Result) => Result;

/** better-sqlite3 builds a wrapper for each function that it is to run in a transaction; here one serves them all. */
export function transactions(db: Sqlite): Atomic {
  const run = db.transaction((work: () => unknown) => work());
  return <Result>(work: () => Result) => {
    try {
      return run.immediate(work) as Result;
    } catch (error) {
      throw named(db.name, error);
    }
  };
}

/** A whole copy of a database, with what its log holds. Throws SQLite's error. */
export function copyDatabase(from: string, to: string): void {
  const db = openSqlite(from, { fileMustExist: true });
  try {
    copyInto(db, to);
  } finally {
    db.close();
  }
}

/** The same of an open one. The copy has its name only when it is complete and on the device. */
export function copyInto(db: Sqlite, to: string): void {
  const part = `${to}.part`;
  rmSync(part, { force: true });
  statements(db)("VACUUM INTO ?").run(part);
  sync(part);
  renameSync(part, to);
  sync(dirname(to));
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** What each database is for, and what is to be done where it is damaged: by its file's name. */
const whereDamaged: Readonly<Record<string, string>> = {
  "state.db":
    "restore it from a backup, or `bulkgen doctor --rebuild` makes it again from the receipts and the archive",
  "accounts.db":
    "it holds what all workspaces share: the request ledger and the books of the keys. Restore it from a backup, or put it aside while nothing runs, with its -wal and -shm, and it begins anew: requests sent so far are no longer counted against the limits, learned times are learned again, and paid requests without an answer are held for you to decide. No task and no file is lost",
  "service.db":
    "it holds the sandbox's accounts and tasks, which cost nothing. Put it aside while no sandbox runs, with its -wal and -shm, and it begins anew",
  "schedules.db":
    "it holds the schedules and their nights. Restore it from a backup, or put it aside while no daemon runs, with its -wal and -shm, and give the schedules again with `bulkgen schedule add`. No run is lost",
};

/**
 * What to do about a database, or a file of the workspace, that cannot be used, by what was thrown, which names it;
 * null where that is not known. Only one that is damaged is to be replaced: a newer program's, or one on a full disk, is whole.
 */
export function wayOut(error: unknown): string | null {
  const { code, message, path } = error as NodeJS.ErrnoException;
  if (error instanceof NewerDatabase) return "update bulkgen";
  if (path !== undefined && /^(EACCES|EPERM|EROFS)$/.test(String(code)))
    return `let this user read and write ${path}`;
  switch (/^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|PERM|BUSY|CORRUPT|NOTADB)/.exec(String(code))?.[1]) {
    case "FULL":
      return "free some space on its disk";
    case "IOERR":
      return "see that its disk has room and may be written";
    case "READONLY":
    case "CANTOPEN":
    case "PERM":
      return "make it and its folder writable";
    case "BUSY":
      return "another process is writing in it: try again when that has ended";
    case "CORRUPT":
    case "NOTADB":
      return damaged(message);
    default:
      return null;
  }
}

/** Whether a database cannot be opened for what it is stored on, or for another process: nothing is known of what is in it. */
export function isRefused(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return /^SQLITE_(FULL|READONLY|CANTOPEN|PERM|BUSY)/.test(String(code));
}

function damaged(message: string): string | null {
  if (/[/\\]sandbox[/\\]state\.db: /.test(message))
    return "nothing in it was paid for: `bulkgen doctor --sandbox --rebuild` makes it again, or remove it";
  if (/\.lock: /.test(message)) return "it holds nothing: remove it while no bulkgen runs";
  return whereDamaged[/([a-z]+\.db): /.exec(message)?.[1] ?? ""] ?? null;
}
