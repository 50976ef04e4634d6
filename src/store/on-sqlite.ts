import { type FileHandle, open } from "node:fs/promises";
import type { Clock } from "../clock.js";
import { named, type Sqlite, type Statement, statements } from "../sqlite.js";
import { type Defer, groupCommits } from "./open.js";
import type { Database, Queries, Query, Script } from "./script.js";

export interface SqliteDatabase extends Database {
  /** Commits what was requested until now, and closes the database. */
  close(): Promise<void>;
}

export function sqliteDatabase(db: Sqlite, clock: Clock, defer?: Defer): SqliteDatabase {
  const log = db.memory ? null : new LogSync(db);
  const { atomic, commit } = groupCommits(db, {
    ...(defer && { defer }),
    ...(log && { sync: () => log.sync() }),
  });
  const read = async <Result>(script: () => Script<Result>): Promise<Result> => {
    try {
      return finish(script());
    } catch (error) {
      throw named(db.name, error);
    }
  };
  return {
    sql: sqliteQueries(db),
    clock,
    atomic: (script) => atomic(() => finish(script())),
    read,
    ask: read,
    async close() {
      await commit();
      await log?.close();
      db.close();
    },
  };
}

/**
 * Makes the commits of a database durable by syncing its write-ahead log. SQLite would do the same with each commit
 * (`synchronous=FULL`), but hold up everything else until the disk has answered.
 */
class LogSync {
  private log: FileHandle | null = null;

  /** Closes the database if it is damaged. */
  constructor(private readonly db: Sqlite) {
    try {
      db.pragma("synchronous = NORMAL");
    } catch (error) {
      db.close();
      throw error;
    }
  }

  async sync(): Promise<void> {
    try {
      this.log ??= await open(`${this.db.name}-wal`, "r+");
      await this.log.datasync();
    } catch (error) {
      throw this.asSqlite(error as NodeJS.ErrnoException);
    }
  }

  async close(): Promise<void> {
    await this.log?.close();
  }

  /** The error that SQLite would have reported. */
  private asSqlite({ code, message }: NodeJS.ErrnoException): Error {
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    const error = new Error(`${this.db.name}: ${message}`);
    return Object.assign(error, { code: isFull ? "SQLITE_FULL" : "SQLITE_IOERR_FSYNC" });
  }
}

/** Queries by their text: each is prepared once per connection. */
export function sqliteQueries(db: Sqlite): Queries {
  const prepared = statements(db);
  const queries = new Map<string, SqliteQuery>();
  return (text) => {
    let query = queries.get(text);
    if (!query) {
      query = new SqliteQuery(prepared(text));
      queries.set(text, query);
    }
    return query;
  };
}

/** Runs a script on SQLite. */
export function finish<Result>(script: Script<Result>): Result {
  for (;;) {
    const { done, value } = script.next();
    if (done) return value;
    if (!value.isAlone) throw new Error(`SQLite was to answer at once: ${value.text}`);
  }
}

// biome-ignore-start lint/correctness/useYield: SQLite answers at once.
class SqliteQuery implements Query {
  constructor(private readonly statement: Statement) {}

  *get(...values: unknown[]) {
    return this.statement.get(...values);
  }

  *all(...values: unknown[]) {
    return this.statement.all(...values);
  }

  *value(...values: unknown[]) {
    return this.statement.value(...values);
  }

  *run(...values: unknown[]) {
    this.statement.run(...values);
  }

  *changes(...values: unknown[]) {
    return this.statement.run(...values).changes;
  }

  *insert(...values: unknown[]) {
    return Number(this.statement.run(...values).lastInsertRowid);
  }
}
// biome-ignore-end lint/correctness/useYield: as above
