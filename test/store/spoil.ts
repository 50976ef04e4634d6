import { closeSync, openSync, writeSync } from "node:fs";
import { openSqlite } from "../../src/sqlite.js";

/** Spoils the first page of a table, as a failing disk does: opening the database does not show it. */
export function spoil(file: string, table: string): void {
  const db = openSqlite(file);
  const { page } = db.prepare("SELECT rootpage AS page FROM sqlite_schema WHERE name = ?").get(table) as {
    page: number;
  };
  const bytes = db.pragma("page_size", { simple: true }) as number;
  db.close();
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, Buffer.alloc(bytes, 0xaa), 0, bytes, (page - 1) * bytes);
  closeSync(descriptor);
}
