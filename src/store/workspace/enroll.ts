import { priceGroup } from "../../core/identity.js";
import type { NewItem } from "../../core/ports/store.js";
import type { InTransaction, Script } from "../script.js";
import { applyTransition } from "./transition.js";

/** How items are added to a run. Call both functions inside a transaction. */

/** Adds items to a run. Items that the job has already get the new order and names. */
export function* put({ sql }: InTransaction, runId: number, items: Iterable<NewItem>): Script<void> {
  const { jobId } = yield* runOf({ sql }, runId);
  for (const item of items) {
    yield* sql(
      `INSERT INTO items (job_id, run_id, key, edition, occurrence, variant, position, priority,
         row_number, row_id, name, model, category, prompt, params, inputs, files, cells, price, price_group, approval,
         state)
       VALUES (@jobId, @runId, @key, @edition, @occurrence, @variant, @position, @priority,
         @rowNumber, @rowId, @name, @model, @category, @prompt, @params, @inputs, @files, @cells, @price, @group, @approval,
         @state)
       ON CONFLICT (job_id, key) DO UPDATE SET run_id = @runId, position = @position, priority = @priority,
         row_number = @rowNumber, row_id = @rowId, name = @name, cells = @cells, vanished = 0,
         approval = CASE WHEN @approval IS NULL THEN NULL ELSE coalesce(items.approval, @approval) END,
         price = CASE WHEN items.state IN ('planned', 'blocked') OR NOT EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id)
           THEN @price ELSE items.price END`,
    ).run({
      ...item,
      parents: null,
      approve: null,
      approval: item.approve ? "waiting" : null,
      state: item.parents === undefined ? "planned" : "blocked",
      group: priceGroup(item),
      jobId,
      runId,
      params: JSON.stringify(item.params),
      inputs: JSON.stringify(item.inputs),
      files: item.files === undefined ? null : JSON.stringify(item.files),
      cells: JSON.stringify(item.cells),
    });
    for (const { field, key, output } of item.parents ?? [])
      yield* sql(
        `INSERT INTO parents (item_id, field, parent_key, output)
         SELECT id, ?, ?, ? FROM items WHERE job_id = ? AND key = ? ON CONFLICT DO NOTHING`,
      ).run(field, key, output, jobId, item.key);
  }
}

/** Open items of another user: the service gives a task only to the user who submitted it. */
const othersOpen = `state IN ('planned', 'blocked', 'submitting', 'unknown', 'held', 'processing', 'overdue', 'ready')
  AND EXISTS (SELECT 1 FROM runs WHERE runs.id = items.run_id AND (account_id <> @accountId OR origin <> @origin))`;

/**
 * Makes the run's items exactly these, plus the other open items of its edition. Other editions and other users' open items
 * stay as they are. So do items whose rows are in the manifest but not selected, except that they leave their run.
 */
export function* enroll(
  connection: InTransaction,
  runId: number,
  items: Iterable<NewItem>,
  unselected: Iterable<string> = [],
  onlyRows?: Iterable<string>,
): Script<void> {
  const { sql } = connection;
  const job = {
    ...(yield* runOf(connection, runId)),
    runId,
    unselected: JSON.stringify([...unselected]),
    ...(onlyRows === undefined ? {} : { onlyRows: JSON.stringify([...onlyRows]) }),
  };
  const mine = `job_id = @jobId AND edition = @edition AND NOT (${othersOpen})`;
  const isUnselected = "key IN (SELECT value FROM json_each(@unselected))";
  const left =
    onlyRows === undefined
      ? isUnselected
      : `(${isUnselected} OR row_id NOT IN (SELECT value FROM json_each(@onlyRows)))`;
  yield* sql(`UPDATE items SET vanished = 1, run_id = NULL WHERE ${mine} AND NOT ${left}`).run(job);
  yield* sql(`UPDATE items SET vanished = 0 WHERE ${mine} AND vanished = 1 AND (variant > 1 OR ${left})`).run(
    job,
  );
  yield* sql(
    `UPDATE items SET run_id = NULL WHERE ${mine} AND ${left} AND state IN ('planned', 'blocked')`,
  ).run(job);
  yield* put(connection, runId, items);
  function* untried(where: string): Script<{ id: number }[]> {
    return (yield* sql(
      `SELECT id FROM items WHERE ${mine} AND NOT ${left} AND ${where}
         AND NOT EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id)`,
    ).all(job)) as { id: number }[];
  }
  for (const { id } of yield* untried("run_id IS NOT NULL AND state = 'dropped'"))
    yield* applyTransition(connection, id, "returned");
  // An item that was refused stays planned, outside of every run: a dropped item with an attempt cannot come back.
  for (const { id } of yield* untried("run_id IS NULL AND state IN ('planned', 'blocked')")) {
    yield* applyTransition(connection, id, "dropped");
  }
  // A submitted, unfinished item is completed by the current run, whether it is in the manifest or not.
  yield* sql(
    `UPDATE items SET run_id = @runId WHERE ${mine}
       AND state IN ('submitting', 'unknown', 'held', 'processing', 'overdue', 'ready')`,
  ).run(job);
}

interface RunKey {
  jobId: number;
  edition: string;
  accountId: string;
  origin: string;
}

function* runOf({ sql }: Pick<InTransaction, "sql">, runId: number): Script<RunKey> {
  return (yield* sql(
    "SELECT job_id AS jobId, edition, account_id AS accountId, origin FROM runs WHERE id = ?",
  ).get(runId)) as RunKey;
}
