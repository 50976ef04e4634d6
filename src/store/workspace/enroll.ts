import { priceGroup, variantKey } from "../../core/identity.js";
import { uncollectedStates } from "../../core/item.js";
import type { NewItem } from "../../core/ports/store.js";
import { variantFileName, variantName } from "../../core/variant.js";
import { type InTransaction, listed, type Script } from "../script.js";
import { askForVariants, replaceRejected } from "./approvals.js";
import { orderedVariants } from "./ordered.js";
import { applyTransition } from "./transition.js";

/** How items are added to a run. Call both functions inside a transaction. */

/**
 * Adds items to a run. Items that the job has already get the new order, names and paths. A statement takes many:
 * PostgreSQL keeps each version of a run's sums until the end of the transaction, and would read through all of them for
 * each item.
 */
export function* put(connection: InTransaction, runId: number, items: Iterable<NewItem>): Script<void> {
  const { sql } = connection;
  const { jobId } = yield* runOf({ sql }, runId);
  const variants = yield* variantsOf(connection, jobId);
  /** By their keys: a statement cannot put one twice. */
  const batch = new Map<string, NewItem>();
  function* flush(): Script<void> {
    const rows = [...batch.values()].map(valuesOf);
    const named = rows.flatMap((row, at) =>
      Object.entries(row).map(([name, value]) => [`${name}_${at}`, value]),
    );
    yield* sql(putting(rows)).run({ jobId, runId, ...Object.fromEntries(named) });
    for (const { key, parents = [] } of batch.values())
      for (const parent of parents)
        yield* sql(
          `INSERT INTO parents (item_id, field, parent_key, output)
           SELECT id, ?, ?, ? FROM items WHERE job_id = ? AND key = ? ON CONFLICT DO NOTHING`,
        ).run(parent.field, parent.key, parent.output, jobId, key);
    for (const { key, approve } of batch.values()) if (approve) yield* askForVariants(connection, jobId, key);
    yield* variantsFollow(connection, jobId, variants, batch.values());
    const waiting = [...batch.values()].filter(({ parents }) => parents !== undefined);
    if (waiting.length > 0)
      yield* replaceRejected(
        connection,
        jobId,
        waiting.map(({ key }) => key),
      );
    batch.clear();
  }
  for (const item of items) {
    if (batch.size === batchMax || batch.has(item.key)) yield* flush();
    batch.set(item.key, item);
  }
  if (batch.size > 0) yield* flush();
}

/** The variants that a job has: their keys, and the highest of their numbers. */
function* variantsOf(
  { sql }: InTransaction,
  jobId: number,
): Script<{ keys: ReadonlySet<string>; most: number }> {
  const rows = (yield* sql("SELECT key, variant FROM items WHERE job_id = ? AND variant > 1").all(jobId)) as {
    key: string;
    variant: number;
  }[];
  const most = rows.reduce((max, { variant }) => Math.max(max, variant), 1);
  return { keys: new Set(rows.map(({ key }) => key)), most };
}

/** The variants of a row are called as the row is now, and stand where it stands. */
function* variantsFollow(
  { sql }: InTransaction,
  jobId: number,
  { keys, most }: { keys: ReadonlySet<string>; most: number },
  items: Iterable<NewItem>,
): Script<void> {
  for (const item of keys.size === 0 ? [] : items)
    for (let variant = 2; item.variant === 1 && variant <= most; variant++) {
      const key = variantKey(item.key, variant);
      if (!keys.has(key)) continue;
      yield* sql(
        "UPDATE items SET row_id = ?, name = ?, row_number = ?, position = ?, cells = ? WHERE job_id = ? AND key = ?",
      ).run(
        variantName(item.rowId, variant),
        variantFileName(item.name, variant),
        item.rowNumber,
        item.position,
        JSON.stringify(item.cells),
        jobId,
        key,
      );
    }
}

/**
 * The item with this key that was put into a run. Found by the job, whose keys have an index: a run may have many
 * items.
 */
export const itemOfRun = `
  SELECT items.id FROM runs CROSS JOIN items ON items.job_id = runs.job_id WHERE runs.id = ? AND items.key = ?`;

const batchMax = 100;

function valuesOf(item: NewItem) {
  return {
    key: item.key,
    edition: item.edition,
    occurrence: item.occurrence,
    variant: item.variant,
    position: item.position,
    priority: item.priority,
    row_number: item.rowNumber,
    row_id: item.rowId,
    name: item.name,
    model: item.model,
    category: item.category,
    prompt: item.prompt,
    params: JSON.stringify(item.params),
    inputs: JSON.stringify(item.inputs),
    files: item.files === undefined ? null : JSON.stringify(item.files),
    cells: JSON.stringify(item.cells),
    price: item.price,
    price_group: priceGroup(item),
    approval: item.approve ? "waiting" : null,
    state: item.parents === undefined ? "planned" : "blocked",
  };
}

function putting(items: readonly ReturnType<typeof valuesOf>[]): string {
  const columns = Object.keys(items[0] ?? {});
  const rows = items.map(
    (_, at) => `(@jobId, @runId, ${columns.map((column) => `@${column}_${at}`).join(", ")})`,
  );
  return `INSERT INTO items (job_id, run_id, ${columns.join(", ")}) VALUES ${rows.join(", ")}
     ON CONFLICT (job_id, key) DO UPDATE SET run_id = excluded.run_id, position = excluded.position,
       priority = excluded.priority, row_number = excluded.row_number, row_id = excluded.row_id, name = excluded.name,
       inputs = excluded.inputs, files = excluded.files, cells = excluded.cells, vanished = 0,
       approval = CASE WHEN excluded.approval IS NULL AND items.approval = 'waiting' THEN NULL
         ELSE coalesce(items.approval, excluded.approval) END,
       price = CASE WHEN items.state IN ('planned', 'blocked') OR NOT EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id)
         THEN excluded.price ELSE items.price END`;
}

/** Open items of another user: the service gives a task only to the user who submitted it. */
const othersOpen = `state IN ('planned', 'blocked', 'held', ${listed(uncollectedStates)})
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
  const kept = yield* keepOrdered(connection, runId, job);
  for (const { id } of yield* untried("run_id IS NULL AND state IN ('planned', 'blocked')"))
    if (!kept.has(id)) yield* applyTransition(connection, id, "dropped");
  // A submitted, unfinished item is completed by the current run, whether it is in the manifest or not.
  yield* sql(
    `UPDATE items SET run_id = @runId WHERE ${mine}
       AND state IN ('held', ${listed(uncollectedStates)})`,
  ).run(job);
}

/** Variants that a person has ordered belong to their rows: they are made with them, or wait for them. */
function* keepOrdered(
  { sql }: Pick<InTransaction, "sql">,
  runId: number,
  { jobId, edition }: Pick<RunKey, "jobId" | "edition">,
): Script<Set<number>> {
  const kept = new Set<number>();
  for (const { id, of } of yield* orderedVariants({ sql }, jobId, edition)) {
    const own = (yield* sql("SELECT run_id AS runId, vanished FROM items WHERE job_id = ? AND key = ?").get(
      jobId,
      of,
    )) as { runId: number | null; vanished: number } | undefined;
    if (own === undefined || own.vanished === 1) continue;
    kept.add(id);
    if (own.runId === runId) yield* sql("UPDATE items SET run_id = ? WHERE id = ?").run(runId, id);
  }
  return kept;
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
