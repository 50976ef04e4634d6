import type { Clock } from "../clock.js";
import { type Sqlite, type Statement, statements } from "../sqlite.js";
import { type Defer, groupCommits } from "./open.js";
import type { Database, Queries, Query, Script } from "./script.js";

export interface SqliteDatabase extends Database {
  /** Commits what was requested until now. */
  commit(): void;
}

export function sqliteDatabase(db: Sqlite, clock: Clock, defer?: Defer): SqliteDatabase {
  const { atomic, commit } = groupCommits(db, defer);
  return {
    sql: sqliteQueries(db),
    clock,
    atomic: (script) => atomic(() => finish(script())),
    read: async (script) => finish(script()),
    commit,
  };
}

/** Queries by their text: each is prepared once per connection. */
export function sqliteQueries(db: Sqlite): Queries {
  const prepared = statements(db);
  const queries = new Map<string, SqliteQuery>();
  return (text) => {
    let query = queries.get(text);
    if (!query) {
      query = new SqliteQuery(prepared(text.replaceAll(rowLock, "")));
      queries.set(text, query);
    }
    return query;
  };
}

/** SQLite locks the whole database for a transaction, and has no words for less. */
const rowLock = " FOR UPDATE";

/** Runs a script on SQLite. */
export function finish<Result>(script: Script<Result>): Result {
  const { done, value } = script.next();
  if (!done) throw new Error(`SQLite was to answer at once: ${value.text}`);
  return value;
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
    return this.statement.run(...values).changes;
  }

  *insert(...values: unknown[]) {
    return Number(this.statement.run(...values).lastInsertRowid);
  }
}
// biome-ignore-end lint/correctness/useYield: as above
