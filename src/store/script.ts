import type { Clock } from "../clock.js";

/**
 * The queries of one transaction, or of one reading, written once for SQLite and PostgreSQL: `yield*` asks a query and
 * gives its answer. SQLite has it at once, so a script runs from start to end; PostgreSQL drives it from answer to
 * answer (`postgres/connect.ts`).
 */
export type Script<Result> = Generator<PendingQuery, Result, QueryResult>;

/** A query that PostgreSQL has yet to answer. */
export interface PendingQuery {
  text: string;
  values: unknown[];
  /** In place of a query: from here on the script goes on when no other does (`Database.atomic`). */
  isAlone?: boolean;
  /** Its answer is of no use to the script, which goes on at once. If it fails, so does the script, at its next answer or end. */
  isTold?: boolean;
}

export interface QueryResult {
  rows: Record<string, unknown>[];
  /** How many rows it changed. */
  changes: number;
}

/** A method of a port as the script of its transaction. */
export type AsScript<Method> = Method extends (...given: infer Given) => Promise<infer Result>
  ? (...given: Given) => Script<Result>
  : never;

/** Gives the query of a text, in words that both databases know; `postgres/dialect.ts` has the exceptions. */
export type Queries = (text: string) => Query;

/**
 * Values are given in the order of its question marks, or as one object by their names (`@name`). Nothing is asked
 * without `yield*`.
 */
export interface Query {
  /** The first row, or undefined where there is none. */
  get(...values: unknown[]): Script<unknown>;
  all(...values: unknown[]): Script<unknown[]>;
  /** The first column of the first row, or undefined where there is none. */
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

/** From here on a script with a `part` goes on when no other of its transaction does. */
export function* alone(): Script<void> {
  yield { text: "", values: [], isAlone: true };
}

/**
 * What a script is about, by a text or an object of its own. It decides by nothing that scripts about something else change,
 * so that their queries may come between its own, until it asks to be `alone`. A change and the query after it, of which only
 * the last is waited for, stay together.
 */
export interface Apart {
  part: string | object;
}

/** An open database. */
export interface Database extends InTransaction {
  /**
   * Runs a script in a transaction with a write lock from its start; resolves when it is durable. A script may be run again
   * after its transaction was rolled back, so it changes nothing but the database; `once` is for one that cannot be.
   */
  atomic<Result>(script: () => Script<Result>, how?: "once" | Apart): Promise<Result>;
  /** Runs a script that only reads. */
  read<Result>(script: () => Script<Result>): Promise<Result>;
  /** Runs one that asks a single query: that needs no transaction, whose ends would be two more round trips. */
  ask<Result>(script: () => Script<Result>): Promise<Result>;
}
