import type { Clock } from "../clock.js";

/**
 * The queries of one transaction, or of one reading, written once for SQLite and PostgreSQL: `yield*` asks a query and
 * gives its answer. SQLite has it at once, so a script runs from start to end; PostgreSQL drives it from answer to
 * answer (`postgres/groups.ts`).
 */
export type Script<Result> = Generator<PendingQuery, Result, QueryResult>;

/** A query that PostgreSQL has yet to answer. */
export interface PendingQuery {
  text: string;
  values: unknown[];
  /** Used instead of a query: from here on the script continues only while no other script does (`Database.atomic`). */
  isAlone?: boolean;
  /**
   * The script does not need the answer and continues at once. If the query fails, the script fails at its next answer
   * or at its end.
   */
  isTold?: boolean;
}

export interface QueryResult {
  rows: Record<string, unknown>[];
  /** How many rows it changed. */
  changes: number;
}

/** Makes a query from a text, in SQL that both databases understand; `postgres/dialect.ts` has the exceptions. */
export type Queries = (text: string) => Query;

/**
 * Values are given in the order of the question marks, or as one object by their names (`@name`). Without `yield*` no
 * query is sent.
 */
export interface Query {
  /** The first row, or undefined if there is none. */
  get(...values: unknown[]): Script<unknown>;
  all(...values: unknown[]): Script<unknown[]>;
  /** The first column of the first row, or undefined if there is none. */
  value(...values: unknown[]): Script<unknown>;
  /** PostgreSQL's answer is not waited for. */
  run(...values: unknown[]): Script<void>;
  /** Returns how many rows it changed. */
  changes(...values: unknown[]): Script<number>;
  /** Returns the number (`id`) that the new row was given. */
  insert(...values: unknown[]): Script<number>;
}

/** The connection, for code that runs inside a transaction. */
export interface InTransaction {
  sql: Queries;
  clock: Clock;
}

/** From here on a script with a `part` continues only while no other script of its transaction does. */
export function* alone(): Script<void> {
  yield { text: "", values: [], isAlone: true };
}

/**
 * The subject of a script, as a text or an object. The script's decisions depend on nothing that scripts about other
 * subjects change, so their queries may come between its own, until it asks to be `alone`. If a script waits only for
 * the last of a change and the query after it, the two stay together.
 */
export interface Apart {
  part: string | object;
}

/** An open database. */
export interface Database extends InTransaction {
  /**
   * Runs a script in a transaction with a write lock from its start; resolves when it is durable. A script may be run
   * again after its transaction was rolled back, so it must change nothing except the database; `once` is for a script
   * that cannot be run again.
   */
  atomic<Result>(script: () => Script<Result>, how?: "once" | Apart): Promise<Result>;
  /** Runs a script that only reads. */
  read<Result>(script: () => Script<Result>): Promise<Result>;
  /** Runs a script with a single query. It needs no transaction, which would cost two more round trips. */
  ask<Result>(script: () => Script<Result>): Promise<Result>;
}

/** Words, without quotes in them, as the list of SQL's IN. */
export function listed(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(", ");
}
