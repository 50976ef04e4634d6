import { createRequire } from "node:module";
import type BetterSqlite3 from "better-sqlite3";

/**
 * The one way to SQLite. better-sqlite3 12 is the newest that runs on Node 20 but aborts on Node 24; 13 speaks
 * Node-API 10 and crashes Node 20. Both have one interface, so the running Node decides which one is loaded.
 */
export type Sqlite = BetterSqlite3.Database;
export type SqliteOptions = BetterSqlite3.Options;

type Constructor = new (path: string, options?: SqliteOptions) => Sqlite;

const require = createRequire(import.meta.url);

function load(): Constructor {
  if (Number(process.versions.napi) >= 10) {
    try {
      return require("better-sqlite3-napi") as Constructor;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return require("better-sqlite3") as Constructor;
}

let Database: Constructor | undefined;

/** Opens a database file (or ":memory:"). Throws SQLite's own error when it cannot be opened. */
export function openSqlite(path: string, options: SqliteOptions = {}): Sqlite {
  Database ??= load();
  return new Database(path, options);
}
