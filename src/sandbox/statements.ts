import type { Sqlite } from "../sqlite.js";

/** A prepared statement, as far as it is used here. */
export interface Statement {
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  run(...values: unknown[]): unknown;
}

/** Gives the statement of a text. */
export type Sql = (text: string) => Statement;

/** Statements by their text: each is prepared once. */
export function statementsOf(db: Sqlite): Sql {
  const prepared = new Map<string, Statement>();
  return (text) => {
    const known = prepared.get(text);
    if (known) return known;
    const statement: Statement = db.prepare<unknown[]>(text);
    prepared.set(text, statement);
    return statement;
  };
}
