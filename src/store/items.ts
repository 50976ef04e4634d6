import type { Clock } from "../clock.js";
import { follow, type ItemEvent, type ItemState, itemStates } from "../core/item.js";
import type { Credits } from "../core/money.js";
import type { Due, Item, NewItem, Spending, Store } from "../core/store.js";
import type { Sqlite } from "../sqlite.js";
import type { Sql } from "./open.js";

/** Items of the workspace: their rows, their steps from state to state, and what is due. */
export interface Connection {
  db: Sqlite;
  sql: Sql;
  clock: Clock;
}

/** Takes one step in an item's life and writes it down. Must run inside a transaction. Throws IllegalTransition. */
export function step({ sql, clock }: Connection, itemId: number, event: ItemEvent): void {
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

type ItemMethods = Pick<
  Store,
  | "itemsOf"
  | "enroll"
  | "due"
  | "counts"
  | "item"
  | "items"
  | "spending"
  | "apply"
  | "reschedule"
  | "interrupted"
>;

export function itemMethods(connection: Connection): ItemMethods {
  const { db, sql } = connection;
  const select = (where: string, ...values: unknown[]) =>
    (
      sql(
        `SELECT *, EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id) AS attempted FROM items WHERE ${where}`,
      ).all(...values) as ItemRow[]
    ).map(asItem);

  return {
    itemsOf: async (jobName) =>
      select("job_id = (SELECT id FROM jobs WHERE name = ?) ORDER BY position, id", jobName),
    items: async (runId) => select("run_id = ? ORDER BY position, id", runId),
    interrupted: async () => select("state = 'submitting' ORDER BY id"),

    async item(itemId) {
      const [found] = select("id = ?", itemId);
      if (!found) throw new Error(`no item ${itemId} in this workspace`);
      return found;
    },

    enroll: async (runId, items) => db.transaction(() => enroll(connection, runId, items)).immediate(),

    async due(runId, limit) {
      const query = (columns: string, where: string, order: string) =>
        sql(`SELECT ${columns} FROM items WHERE run_id = ? AND ${where} ORDER BY ${order} LIMIT ?`).all(
          runId,
          limit,
        );
      const lookedAt = "(state IN ('processing', 'overdue') OR (state = 'ready' AND expired))";
      const { expired } = sql(
        "SELECT count(*) AS expired FROM items WHERE run_id = ? AND state = 'ready' AND expired",
      ).get(runId) as { expired: number };
      return {
        planned: query("id, price, next_at AS nextAt", "state = 'planned'", "priority DESC, position"),
        tasks: query("id, next_at AS nextAt", lookedAt, "next_at"),
        ready: query("id, next_at AS nextAt", "state = 'ready' AND NOT expired", "next_at"),
        expired,
      } as Due;
    },

    async counts(runId) {
      const counts = Object.fromEntries(itemStates.map((state) => [state, 0])) as Record<ItemState, number>;
      const rows = sql("SELECT state, count(*) AS n FROM items WHERE run_id = ? GROUP BY state").all(runId);
      for (const row of rows as { state: ItemState; n: number }[]) counts[row.state] = row.n;
      return counts;
    },

    spending: async (runId) => spending(sql, runId),

    apply: async (itemId, event, change) =>
      db
        .transaction(() => {
          step(connection, itemId, event);
          sql(
            "UPDATE items SET next_at = coalesce(?, next_at), note = coalesce(?, note), failure_kind = coalesce(?, failure_kind) WHERE id = ?",
          ).run(change.nextAt ?? null, change.note ?? null, change.failureKind ?? null, itemId);
          if (event === "task_failed") {
            sql(
              "UPDATE attempts SET charged = ?, completed_at = ?, closed = 1 WHERE item_id = ? AND task_id IS NOT NULL AND closed = 0",
            ).run(change.charged ?? 0, change.completedAt ?? null, itemId);
          }
        })
        .immediate(),

    async reschedule(itemId, nextAt, change = {}) {
      sql(
        "UPDATE items SET next_at = ?, looks = looks + ?, note = CASE WHEN ? THEN ? ELSE note END WHERE id = ?",
      ).run(nextAt, change.looks ?? 0, change.note === undefined ? 0 : 1, change.note ?? null, itemId);
    },
  };
}

function enroll(connection: Connection, runId: number, items: readonly NewItem[]): void {
  const { sql } = connection;
  const { job_id: jobId } = sql("SELECT job_id FROM runs WHERE id = ?").get(runId) as { job_id: number };
  sql("UPDATE items SET run_id = NULL WHERE job_id = ?").run(jobId);
  for (const item of items) {
    sql(
      `INSERT INTO items (job_id, run_id, key, edition, occurrence, position, priority, row_number, row_id, name,
         model, category, prompt, params, inputs, price, state)
       VALUES (@jobId, @runId, @key, @edition, @occurrence, @position, @priority, @rowNumber, @rowId, @name,
         @model, @category, @prompt, @params, @inputs, @price, 'planned')
       ON CONFLICT (job_id, key) DO UPDATE SET run_id = @runId, position = @position, priority = @priority,
         row_number = @rowNumber, row_id = @rowId, name = @name,
         price = CASE WHEN state = 'planned' THEN @price ELSE price END`,
    ).run({
      ...item,
      jobId,
      runId,
      params: JSON.stringify(item.params),
      inputs: JSON.stringify(item.inputs),
    });
  }
  const named = (where: string) =>
    (sql(`SELECT id FROM items WHERE job_id = ? AND ${where}`).all(jobId) as { id: number }[]).map(
      (row) => row.id,
    );
  for (const id of named(
    `run_id IS ${runId} AND state = 'dropped' AND NOT EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id)`,
  ))
    step(connection, id, "returned");
  for (const id of named("run_id IS NULL AND state IN ('planned', 'blocked')")) {
    step(connection, id, "dropped");
  }
  // What was submitted and is not finished is completed by whichever run is there, in the manifest or not.
  sql(
    `UPDATE items SET run_id = ? WHERE job_id = ? AND run_id IS NULL
       AND state IN ('submitting', 'unknown', 'held', 'processing', 'overdue', 'ready')`,
  ).run(runId, jobId);
}

/**
 * Credits of a run. An attempt without an answer counts with the item's price until it is settled: a cap that ignored
 * it could be broken by what turns out to have been charged.
 */
function spending(sql: Sql, runId: number): Spending {
  const row = sql(
    `SELECT
       coalesce(sum(CASE WHEN a.closed THEN a.charged ELSE 0 END), 0) AS charged,
       coalesce(sum(CASE WHEN a.closed THEN 0
                         WHEN a.outcome = 'accepted' THEN coalesce(a.charged, i.price)
                         WHEN a.outcome IS NULL OR a.outcome = 'unanswered' THEN i.price
                         ELSE 0 END), 0) AS pending
     FROM attempts a JOIN items i ON i.id = a.item_id WHERE a.run_id = ?`,
  ).get(runId) as { charged: number; pending: number };
  return { charged: row.charged as Credits, pending: row.pending as Credits };
}

interface ItemRow {
  id: number;
  job_id: number;
  run_id: number | null;
  key: string;
  edition: string;
  occurrence: number;
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
  price: number;
  state: ItemState;
  attempted: number;
  next_at: number;
  looks: number;
  failure_kind: Item["failureKind"];
  note: string | null;
}

function asItem(row: ItemRow): Item {
  return {
    id: row.id,
    jobId: row.job_id,
    runId: row.run_id,
    key: row.key,
    edition: row.edition,
    occurrence: row.occurrence,
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
    price: row.price as Credits,
    state: row.state,
    attempted: row.attempted === 1,
    nextAt: row.next_at,
    looks: row.looks,
    failureKind: row.failure_kind,
    note: row.note,
  };
}
