import { follow, type ItemEvent, type ItemState } from "../../core/item.js";
import type { Item } from "../../core/ports/store.js";
import type { Database, InTransaction, Script } from "../script.js";

/** A connection for code that stores paths. */
export interface RootedDatabase extends Database {
  /** The workspace's current folder. */
  root: string;
}

/**
 * Changes an item's state by an event and records the event. No other code changes the state of an item. Call it inside
 * a transaction. Returns whether items may wait for its outputs. Throws IllegalTransition.
 */
export function* applyTransition(
  { sql, clock }: InTransaction,
  itemId: number,
  event: ItemEvent,
): Script<{ hasChildren: boolean }> {
  const row = (yield* sql(before).get(itemId)) as Before | undefined;
  if (!row) throw new Error(`no item ${itemId} in this workspace`);
  const to = follow(row.state, event);
  yield* sql(
    "INSERT INTO events (item_id, run_id, attempt, at, from_state, event) VALUES (?, ?, ?, ?, ?, ?)",
  ).run(itemId, row.run_id, row.attempt, clock.now(), row.state, event);
  yield* sql("UPDATE items SET state = ? WHERE id = ?").run(to, itemId);
  return { hasChildren: row.hasChildren === 1 };
}

const before = `
  SELECT state, run_id, (SELECT max(number) FROM attempts WHERE item_id = items.id) AS attempt,
    EXISTS (SELECT 1 FROM parents WHERE parent_key = items.key) AS hasChildren
  FROM items WHERE id = ? FOR UPDATE`;

interface Before {
  state: ItemState;
  run_id: number | null;
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

/** The columns of the table `items` under the names of their records; `attempted` is selected beside them. */
export const itemColumns = `
  items.id, items.job_id AS jobId, items.run_id AS runId, items.key, items.edition, items.occurrence, items.variant,
  items.position, ${rowPriority} AS priority, items.row_number AS rowNumber, items.row_id AS rowId, items.name, items.model,
  items.category, items.prompt, items.params, items.inputs, items.files, ${parentsColumn}, items.cells, items.price, items.state, items.next_at AS nextAt,
  items.seen_at AS seenAt, items.polls AS looks, items.failures, items.failure_kind AS failureKind, items.note, items.approval, items.vanished`;

/** SQLite has neither booleans nor objects. */
export type ItemRow = Omit<
  Item,
  "params" | "inputs" | "files" | "parents" | "cells" | "attempted" | "vanished"
> & {
  params: string;
  inputs: string;
  files: string | null;
  parents: string | null;
  cells: string;
  attempted: number;
  vanished: number;
};

export function asItem({ parents, files, ...row }: ItemRow): Item {
  return {
    ...row,
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
