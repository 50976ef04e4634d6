import { keysWith } from "../../core/identity.js";
import type { ItemEvent, ItemState } from "../../core/item.js";
import type { Item, ItemChange, NewItem, OrderedVariant, SavedFile } from "../../core/ports/store.js";
import type { Database, InTransaction, Script } from "../script.js";
import { countsOf } from "./due.js";
import { enroll, itemOfRun, put } from "./enroll.js";
import { orderedVariants } from "./ordered.js";
import { applyTransition, asItem, type ItemRow, itemColumns } from "./transition.js";

const pageItems = 1_000;

// Built once: prepared statements are looked up by their text at each turn of a run.
const itemsWhere = (where: string) =>
  `SELECT ${itemColumns}, EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id) AS attempted FROM items WHERE ${where}`;
const ofJob = "job_id = (SELECT id FROM jobs WHERE name = ?)";
const oneItem = itemsWhere("id = ?");
const jobItems = itemsWhere(`${ofJob} ORDER BY position, id`);
const pageOfJob = itemsWhere(`${ofJob} AND variant = 1 AND id > ? ORDER BY id LIMIT ${pageItems}`);
const vanishedItems = itemsWhere(`vanished = 1 AND ${ofJob} ORDER BY position, id`);
const itemsToArrange = itemsWhere(
  `${ofJob} AND (vanished = 1 OR EXISTS (SELECT 1 FROM outputs WHERE item_id = items.id AND file IS NOT NULL))
   ORDER BY position, id`,
);
// Joined by OR, so that each state is looked up in an index of its own.
const runItems = (states: readonly ItemState[] | undefined) => {
  const inStates = states?.map((state) => `(state = '${state}' AND run_id = @runId)`).join(" OR ");
  return itemsWhere(`${inStates ?? "run_id = @runId"} ORDER BY position, id`);
};
const interruptedItems = itemsWhere("state = 'submitting' OR state = 'unknown' ORDER BY id");
const newestFirst = "ORDER BY run_id DESC NULLS LAST, position, id";
// Each part has its own index; keys have one only for each job.
const namedItems = itemsWhere(
  `id IN (SELECT id FROM items WHERE row_id = @name
     UNION SELECT item_id FROM attempts WHERE task_id = @name
     UNION SELECT items.id FROM jobs CROSS JOIN items ON items.job_id = jobs.id
       AND items.key > @prefix AND items.key < @end) ${newestFirst}`,
);
// Reads every output: an index would make saving each file slower.
const itemsOfFile = itemsWhere(`id IN (SELECT item_id FROM outputs WHERE file = @name) ${newestFirst}`);

export function itemChanges(connection: InTransaction) {
  const { sql } = connection;
  function* apply(itemId: number, event: ItemEvent, change: ItemChange): Script<void> {
    yield* applyTransition(connection, itemId, event, {
      next_at: change.nextAt,
      seen_at: change.seenAt,
      note: change.note,
      failure_kind: change.failureKind,
      price: change.price,
      ...(change.accepts === true ? { accepts: 1, expired: 0 } : {}),
    });
    if (event === "task_failed") {
      yield* sql("UPDATE items SET failures = failures + 1 WHERE id = ?").run(itemId);
      yield* sql(
        "UPDATE attempts SET charged = ?, completed_at = ?, closed = 1 WHERE item_id = ? AND task_id IS NOT NULL AND closed = 0",
      ).run(change.charged ?? 0, change.completedAt ?? null, itemId);
    }
    for (const sha256 of change.publishAgain ?? [])
      yield* sql("DELETE FROM published WHERE sha256 = ?").run(sha256);
    if (change.retryAt !== undefined) yield* apply(itemId, "retry", { nextAt: change.retryAt });
  }
  return {
    add: (runId: number, items: readonly NewItem[]): Script<void> => put(connection, runId, items),
    counts: (runId: number): Script<Record<ItemState, number>> => countsOf(sql, runId),
    apply,
  };
}

/** Items: reading them, and their transitions. */
export function itemMethods(connection: Database) {
  const { atomic, read, ask, sql } = connection;
  const changes = itemChanges(connection);
  function* select(text: string, ...values: unknown[]): Script<Item[]> {
    return ((yield* sql(text).all(...values)) as ItemRow[]).map(asItem);
  }

  return {
    /** All items that the job of that name ever had. */
    itemsOf: (jobName: string): Promise<Item[]> => read(() => select(jobItems, jobName)),
    /**
     * All items that the job ever had, without the variants of redos, from the oldest to the newest and page by page: a job
     * may have more items than fit into memory.
     */
    async *history(jobName: string): AsyncGenerator<readonly Item[], void, void> {
      let last = 0;
      for (;;) {
        const page = await read(() => select(pageOfJob, jobName, last));
        if (page.length === 0) return;
        yield page;
        last = page.at(-1)?.id ?? last;
      }
    },
    /** Variants that a person has ordered and agreed to pay for, and that are not submitted yet. */
    ordered: (jobName: string, edition: string): Promise<OrderedVariant[]> =>
      read(function* () {
        const job = (yield* sql("SELECT id FROM jobs WHERE name = ?").get(jobName)) as
          | { id: number }
          | undefined;
        return job === undefined ? [] : yield* orderedVariants({ sql }, job.id, edition);
      }),
    /** The price groups of the job's items of an edition, or of those of all jobs. */
    priceGroups: (jobName: string | null, edition: string): Promise<string[]> =>
      read(function* () {
        const all = `SELECT DISTINCT price_group AS "group" FROM items WHERE edition = ?`;
        const ofJob = " AND job_id = (SELECT id FROM jobs WHERE name = ?)";
        const rows =
          jobName === null ? yield* sql(all).all(edition) : yield* sql(all + ofJob).all(edition, jobName);
        return (rows as { group: string }[]).map(({ group }) => group);
      }),
    /** Items of the job that have files in the archive or no row any more; or only the items without a row. */
    toArrange: (jobName: string, only?: "vanished"): Promise<Item[]> =>
      read(() => select(only === "vanished" ? vanishedItems : itemsToArrange, jobName)),
    /** The items of a run, optionally only those in these states: a run may have more items than fit into memory. */
    items: (runId: number, states?: readonly ItemState[]): Promise<Item[]> =>
      read(() => select(runItems(states), { runId })),
    /** The row ids of a run's items, in the manifest's order. */
    rowIds: (runId: number): Promise<string[]> =>
      read(function* () {
        const names = "SELECT row_id FROM items WHERE run_id = ? ORDER BY position, id";
        return ((yield* sql(names).all(runId)) as { row_id: string }[]).map(({ row_id }) => row_id);
      }),
    /** Items whose POST was interrupted by a crash: submitting or unknown, without a process. */
    interrupted: (): Promise<Item[]> => read(() => select(interruptedItems)),

    item: (itemId: number): Promise<Item> =>
      ask(function* () {
        const [found] = yield* select(oneItem, itemId);
        if (!found) throw new Error(`no item ${itemId} in this workspace`);
        return found;
      }),

    // The items may be readable only once.
    /**
     * Puts the planned items into the run: new items are added, known items get their new order and names. Items of the
     * job that are not among them have vanished: they are dropped if they were never submitted; the others are completed
     * in this run. Items whose keys are in `unselected` are in the manifest but not selected; they stay as they are, and
     * so do items that another account's run has open. `onlyRows` are the row ids of a manifest that has only some of the
     * job's rows: items of other rows stay as they are too.
     */
    enroll: async (
      runId: number,
      items: Iterable<NewItem>,
      unselected?: Iterable<string>,
      onlyRows?: Iterable<string>,
    ): Promise<void> => atomic(() => enroll(connection, runId, items, unselected, onlyRows), "once"),

    /** Adds items to a run, and touches no other. */
    add: async (runId: number, items: readonly NewItem[]): Promise<void> =>
      atomic(() => changes.add(runId, items)),

    /**
     * A file that was made elsewhere is in the archive as an item's only output: the item joins the run, and nothing is
     * paid.
     */
    supply: async (runId: number, item: NewItem, file: SavedFile): Promise<void> =>
      atomic(function* () {
        yield* put(connection, runId, [item]);
        const { id } = (yield* sql(itemOfRun).get(runId, item.key)) as { id: number };
        yield* sql(
          `INSERT INTO outputs (item_id, number, url, file, out_folder, bucket, bytes, sha256, mime, checked, saved_at)
           VALUES (?, 1, '', ?, (SELECT out_folder FROM runs WHERE id = ?), ?, ?, ?, ?, ?, ?)
           ON CONFLICT (item_id, number) DO UPDATE SET url = '', file = excluded.file, out_folder = excluded.out_folder,
             bucket = excluded.bucket, bytes = excluded.bytes, sha256 = excluded.sha256, mime = excluded.mime, checked = excluded.checked, saved_at = excluded.saved_at`,
        ).run(
          id,
          file.file,
          runId,
          file.bucket ?? null,
          file.bytes,
          file.sha256,
          file.mime,
          file.check,
          connection.clock.now(),
        );
        const state = yield* sql("SELECT state FROM items WHERE id = ?").value(id);
        if (state === "blocked") yield* applyTransition(connection, id, "released");
        // Its run was cancelled before it was submitted.
        if (state === "dropped") yield* applyTransition(connection, id, "returned");
        yield* applyTransition(connection, id, "supplied");
        yield* sql("UPDATE items SET note = 'made elsewhere', failure_kind = NULL WHERE id = ?").run(id);
      }),

    /**
     * Items of the workspace with this row id, short key or task id, or, if there are none, with this file. The newest
     * run's items come first.
     */
    find: (name: string): Promise<Item[]> =>
      read(function* () {
        const found = yield* select(namedItems, { name, ...keysWith(name) });
        return found.length > 0 ? found : yield* select(itemsOfFile, { name });
      }),

    /** Whether the job has an item of this key. */
    has: (jobId: number, key: string): Promise<boolean> =>
      read(function* () {
        return (yield* sql("SELECT 1 FROM items WHERE job_id = ? AND key = ?").get(jobId, key)) !== undefined;
      }),

    /** Any other event of an item. */
    apply: async (...given: Parameters<typeof changes.apply>): Promise<void> =>
      atomic(() => changes.apply(...given)),

    /** A poll or download attempt that changed nothing. */
    reschedule: async (
      itemId: number,
      nextAt: number,
      change: { tries?: number; note?: string | null; seenAt?: number } = {},
    ): Promise<void> =>
      atomic(
        function* () {
          yield* sql(
            "UPDATE items SET next_at = ?, polls = polls + ?, seen_at = coalesce(?, seen_at), note = CASE WHEN ? = 1 THEN ? ELSE note END WHERE id = ?",
          ).run(
            nextAt,
            change.tries ?? 0,
            change.seenAt ?? null,
            change.note === undefined ? 0 : 1,
            change.note ?? null,
            itemId,
          );
        },
        { part: `item ${itemId}` },
      ),
  };
}
