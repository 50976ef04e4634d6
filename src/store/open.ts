import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { named, openSqlite, type Sqlite } from "../sqlite.js";
import { copyDatabase } from "./copy.js";

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
