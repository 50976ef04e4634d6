import type { FailureKind } from "../../core/failure.js";
import type { ItemEvent, ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import { openSqlite, statements } from "../../sqlite.js";

/** A committed transition of an item, with its attempt. */
export interface ItemStep {
  /** Numbered in the order of commits. */
  number: number;
  /** UTC ms. */
  at: number;
  event: ItemEvent;
  rowId: string;
  model: string;
  /** 1 for the first POST of the item; null before there was one. */
  attempt: number | null;
  taskId: string | null;
  charged: Credits | null;
  failureKind: FailureKind | null;
  note: string | null;
  /** Names of the files that the item has in the archive. */
  files: string[];
}

/** The steps of a workspace, for following a run: read on a read-only connection. */
export interface Steps {
  /** The number of the latest step; 0 when there is none. */
  newest(): number;
  /** The steps of a run's items after that number, oldest first. */
  after(runId: number, number: number): ItemStep[];
  /** For each run, how many of the items that took a step in it are left in each state. */
  outcomes(): Map<number, Partial<Record<ItemState, number>>>;
  close(): void;
}

const select = `
  SELECT e.id AS number, e.at, e.event, i.row_id AS rowId, i.model, i.failure_kind AS failureKind, i.note,
    a.number AS attempt, a.task_id AS taskId, a.charged,
    (SELECT json_group_array(file) FROM (SELECT file FROM outputs WHERE item_id = i.id AND file IS NOT NULL ORDER BY number)) AS files
  FROM events e JOIN items i ON i.id = e.item_id
  LEFT JOIN attempts a ON a.item_id = i.id AND a.number = e.attempt
  WHERE e.run_id = ? AND e.id > ? ORDER BY e.id`;

/** A later run of the job takes the items over, so their last step in a run says how it left them. */
const selectOutcomes = `
  SELECT e.run_id AS run, t.to_state AS state, count(*) AS items FROM events e JOIN transitions t USING (from_state, event)
  WHERE e.id IN (SELECT max(id) FROM events WHERE run_id IS NOT NULL GROUP BY run_id, item_id)
  GROUP BY e.run_id, t.to_state`;

/** Opens the steps of an existing workspace. Throws SQLite's error. */
export function openSteps(path: string): Steps {
  const db = openSqlite(path, { readonly: true });
  db.pragma("busy_timeout = 10000");
  const sql = statements(db);
  return {
    newest: () =>
      (sql("SELECT coalesce(max(id), 0) AS number FROM events").get() as { number: number }).number,
    after: (runId, number) =>
      (sql(select).all(runId, number) as (Omit<ItemStep, "files"> & { files: string })[]).map((row) => ({
        ...row,
        files: JSON.parse(row.files) as string[],
      })),
    outcomes() {
      const found = new Map<number, Partial<Record<ItemState, number>>>();
      for (const row of sql(selectOutcomes).all() as { run: number; state: ItemState; items: number }[]) {
        found.set(row.run, { ...found.get(row.run), [row.state]: row.items });
      }
      return found;
    },
    close: () => db.close(),
  };
}
