import { follow, type ItemEvent, type ItemState } from "../../core/item.js";
import type { Item } from "../../core/ports/store.js";
import type { Database, InTransaction, Script } from "../script.js";

/** A connection for code that stores paths. */
export interface RootedDatabase extends Database {
  /** The workspace's current folder. */
  root: string;
}

/** Columns of an item that a transition also sets. Undefined columns stay as they are. */
type Columns = {
  readonly [Name in
    | "accepted_at"
    | "accepts"
    | "addressed_at"
    | "expired"
    | "failure_kind"
    | "fetch_by"
    | "next_at"
    | "note"
    | "polls"
    | "price"
    | "seen_at"]?: number | string | null | undefined;
};

/**
 * Changes an item's state by an event, sets other columns with it, and records the event. No other code changes the state of
 * an item. Call it inside a transaction. Returns whether items may wait for its outputs. Throws IllegalTransition.
 */
export function* applyTransition(
  connection: InTransaction,
  itemId: number,
  event: ItemEvent,
  columns: Columns = {},
): Script<{ hasChildren: boolean }> {
  const item = (yield* connection.sql(itemBefore).get(itemId)) as Before | undefined;
  if (!item) throw new Error(`no item ${itemId} in this workspace`);
  yield* transit(connection, item, event, columns);
  return { hasChildren: item.hasChildren === 1 };
}

/** Applies an event to an item whose columns (`beforeColumns`) were read in this transaction. */
export function* transit(
  { sql, clock }: InTransaction,
  item: Before,
  event: ItemEvent,
  columns: Columns,
): Script<void> {
  const to = follow(item.state, event);
  yield* sql(
    "INSERT INTO events (item_id, run_id, attempt, at, from_state, event) VALUES (?, ?, ?, ?, ?, ?)",
  ).run(item.id, item.runId, item.attempt, clock.now(), item.state, event);
  // What a person accepts are the outputs of one request.
  const all = event === "intended" ? { accepts: 0, ...columns } : columns;
  const set = Object.entries(all).filter(([, value]) => value !== undefined);
  const names = ["state", ...set.map(([name]) => name)].map((name) => `${name} = ?`);
  yield* sql(`UPDATE items SET ${names.join(", ")} WHERE id = ?`).run(
    to,
    ...set.map(([, value]) => value),
    item.id,
  );
}

/** What a transition has to know of an item. */
export const beforeColumns = `
  items.id, items.state, items.run_id AS runId,
  (SELECT max(number) FROM attempts WHERE item_id = items.id) AS attempt,
  EXISTS (SELECT 1 FROM parents WHERE parent_key = items.key) AS hasChildren`;
const itemBefore = `SELECT ${beforeColumns} FROM items WHERE id = ?`;

export interface Before {
  id: number;
  state: ItemState;
  runId: number | null;
  attempt: number | null;
  hasChildren: number;
}

/**
 * A released item goes before all others of its run, because the URLs that it needs expire: its priority is raised by
 * this much, which is more than any two rows differ.
 */
export const releasedFirst = 10_000;
const isRaised = `items.priority >= ${releasedFirst / 2}`;
const rowPriority = `(items.priority - CASE WHEN ${isRaised} THEN ${releasedFirst} ELSE 0 END)`;

/** Most items have no parents, which their inputs show. */
const parentsColumn = `CASE WHEN instr(items.inputs, '"@') > 0 THEN (
    SELECT json_group_array(json_object('field', field, 'key', parent_key, 'output', output)) FROM parents
    WHERE item_id = items.id AND field <> 'canary')
  END AS parents`;

/** The columns of the table `items`, under the field names of their records; `attempted` is selected as well. */
export const itemColumns = `
  items.id, items.job_id AS jobId, items.run_id AS runId, items.key, items.edition, items.occurrence, items.variant,
  items.position, ${rowPriority} AS priority, items.row_number AS rowNumber, items.row_id AS rowId, items.name, items.model,
  items.category, items.prompt, items.params, items.inputs, items.files, ${parentsColumn}, items.cells, items.price, items.state, items.next_at AS nextAt,
  items.seen_at AS seenAt, items.polls AS tries, items.failures, items.failure_kind AS failureKind, items.note, items.approval, items.vanished, items.accepts`;

/** SQLite has neither booleans nor objects. */
export type ItemRow = Omit<
  Item,
  "params" | "inputs" | "files" | "parents" | "cells" | "attempted" | "vanished" | "accepts"
> & {
  params: string;
  inputs: string;
  files: string | null;
  parents: string | null;
  cells: string;
  attempted: number;
  vanished: number;
  accepts: number;
};

export function asItem({ parents, files, accepts, ...row }: ItemRow): Item {
  return {
    ...row,
    ...(accepts === 1 ? { accepts: true as const } : {}),
    ...(row.approval === null ? {} : { approve: true as const }),
    ...(parents === null ? {} : { parents: JSON.parse(parents) }),
    ...(files === null ? {} : { files: JSON.parse(files) }),
    params: JSON.parse(row.params),
    inputs: JSON.parse(row.inputs),
    cells: JSON.parse(row.cells),
    attempted: row.attempted === 1,
    vanished: row.vanished === 1,
  };
}
