import type { Clock } from "../../clock.js";
import { follow, type ItemEvent, type ItemState } from "../../core/item.js";
import type { Item } from "../../core/ports/store.js";
import type { Sql } from "../../sqlite.js";
import type { Grouped } from "../open.js";

/** The connection, for code that runs inside a transaction. */
export interface InTransaction {
  sql: Sql;
  clock: Clock;
}

/** An open database. */
export interface WorkspaceDatabase extends InTransaction {
  atomic: Grouped;
}

/** A connection for code that stores paths. */
export interface RootedDatabase extends WorkspaceDatabase {
  /** The workspace's current folder. */
  root: string;
}

/**
 * Changes an item's state by an event and records the event. No other code changes the state of an item. Call it inside
 * a transaction. Throws IllegalTransition.
 */
export function applyTransition({ sql, clock }: InTransaction, itemId: number, event: ItemEvent): void {
  const row = sql(
    "SELECT state, run_id, (SELECT max(number) FROM attempts WHERE item_id = items.id) AS attempt FROM items WHERE id = ?",
  ).get(itemId) as { state: ItemState; run_id: number | null; attempt: number | null } | undefined;
  if (!row) throw new Error(`no item ${itemId} in this workspace`);
  const to = follow(row.state, event);
  sql("INSERT INTO events (item_id, run_id, attempt, at, from_state, event) VALUES (?, ?, ?, ?, ?, ?)").run(
    itemId,
    row.run_id,
    row.attempt,
    clock.now(),
    row.state,
    event,
  );
  sql("UPDATE items SET state = ? WHERE id = ?").run(to, itemId);
}

/** The columns of the table `items` under the names of their records; `attempted` is selected beside them. */
export const itemColumns = `
  items.id, items.job_id AS jobId, items.run_id AS runId, items.key, items.edition, items.occurrence, items.variant,
  items.position, items.priority, items.row_number AS rowNumber, items.row_id AS rowId, items.name, items.model,
  items.category, items.prompt, items.params, items.inputs, items.cells, items.price, items.state, items.next_at AS nextAt,
  items.seen_at AS seenAt, items.polls AS looks, items.failures, items.failure_kind AS failureKind, items.note, items.vanished`;

/** SQLite has neither booleans nor objects. */
export type ItemRow = Omit<Item, "params" | "inputs" | "cells" | "attempted" | "vanished"> & {
  params: string;
  inputs: string;
  cells: string;
  attempted: number;
  vanished: number;
};

export function asItem(row: ItemRow): Item {
  return {
    ...row,
    params: JSON.parse(row.params),
    inputs: JSON.parse(row.inputs),
    cells: JSON.parse(row.cells),
    attempted: row.attempted === 1,
    vanished: row.vanished === 1,
  };
}
