import type { FailureKind } from "../../core/failure.js";
import type { ItemEvent, ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Database } from "../script.js";

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

/** The steps of a workspace, for following a run. */
export type Steps = ReturnType<typeof stepsOn>;

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

/** The steps in an open database of either kind. */
export function stepsOn({ sql, read }: Pick<Database, "sql" | "read">) {
  return {
    /** The number of the latest step; 0 when there is none. */
    newest: (): Promise<number> =>
      read(function* () {
        return Number(yield* sql("SELECT coalesce(max(id), 0) FROM events").value());
      }),

    /** The steps of a run's items after that number, oldest first. */
    after: (runId: number, number: number): Promise<ItemStep[]> =>
      read(function* () {
        const rows = (yield* sql(select).all(runId, number)) as (Omit<ItemStep, "files"> & {
          files: string;
        })[];
        return rows.map((row) => ({ ...row, files: JSON.parse(row.files) as string[] }));
      }),

    /** For each run: the items that took a step in it, counted by the state in which it left them. */
    outcomes: (): Promise<Map<number, Partial<Record<ItemState, number>>>> =>
      read(function* () {
        const found = new Map<number, Partial<Record<ItemState, number>>>();
        const rows = yield* sql(selectOutcomes).all();
        for (const row of rows as { run: number; state: ItemState; items: number }[])
          found.set(row.run, { ...found.get(row.run), [row.state]: row.items });
        return found;
      }),
  };
}
