import type { Clock } from "../../clock.js";
import type { FailureKind } from "../../core/failure.js";
import { follow, type ItemEvent, type ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Item } from "../../core/ports/store.js";
import type { Sql } from "../../sqlite.js";
import type { Atomic } from "../open.js";

/** An open workspace database. */
export interface WorkspaceDatabase {
  sql: Sql;
  atomic: Atomic;
  clock: Clock;
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
export function applyTransition({ sql, clock }: WorkspaceDatabase, itemId: number, event: ItemEvent): void {
  const row = sql("SELECT state, run_id FROM items WHERE id = ?").get(itemId) as
    | { state: ItemState; run_id: number | null }
    | undefined;
  if (!row) throw new Error(`no item ${itemId} in this workspace`);
  const to = follow(row.state, event);
  sql("INSERT INTO events (item_id, run_id, at, from_state, event) VALUES (?, ?, ?, ?, ?)").run(
    itemId,
    row.run_id,
    clock.now(),
    row.state,
    event,
  );
  sql("UPDATE items SET state = ? WHERE id = ?").run(to, itemId);
}

/** A row of the table `items`. */
export interface ItemRow {
  id: number;
  job_id: number;
  run_id: number | null;
  key: string;
  edition: string;
  occurrence: number;
  variant: number;
  position: number;
  priority: number;
  row_number: number;
  row_id: string;
  name: string;
  model: string;
  category: string;
  prompt: string | null;
  params: string;
  inputs: string;
  cells: string;
  price: number;
  state: ItemState;
  attempted: number;
  next_at: number;
  seen_at: number | null;
  polls: number;
  failures: number;
  failure_kind: FailureKind | null;
  note: string | null;
  vanished: number;
}

export function asItem(row: ItemRow): Item {
  return {
    id: row.id,
    jobId: row.job_id,
    runId: row.run_id,
    key: row.key,
    edition: row.edition,
    occurrence: row.occurrence,
    variant: row.variant,
    position: row.position,
    priority: row.priority,
    rowNumber: row.row_number,
    rowId: row.row_id,
    name: row.name,
    model: row.model,
    category: row.category,
    prompt: row.prompt,
    params: JSON.parse(row.params),
    inputs: JSON.parse(row.inputs),
    cells: JSON.parse(row.cells),
    price: row.price as Credits,
    state: row.state,
    attempted: row.attempted === 1,
    nextAt: row.next_at,
    seenAt: row.seen_at,
    looks: row.polls,
    failures: row.failures,
    failureKind: row.failure_kind,
    note: row.note,
    vanished: row.vanished === 1,
  };
}
