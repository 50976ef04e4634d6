import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { openSqlite, type Sqlite, statements } from "../sqlite.js";

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
