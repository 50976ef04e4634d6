import { keysWith } from "../../core/identity.js";
import { type ItemEvent, type ItemState, itemStates } from "../../core/item.js";
import { type Credits, plus } from "../../core/money.js";
import type { Due, Head, Parked, PlannedSubmit, RunGroup, WaitingGroup } from "../../core/next/next.js";
import type {
  Item,
  ItemChange,
  NewItem,
  OrderedVariant,
  SavedFile,
  Spending,
} from "../../core/ports/store.js";
import type { Database, InTransaction, Queries, Script } from "../script.js";
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

/** Items: reading them, what is due, and their transitions. */
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

    /**
     * What a run has to do soon: counts of its items, all open tasks, and at most `limit` items of each other kind. Of
     * the planned items that are not parked, it returns this many for each head; with `heads` null, the first in the
     * manifest's order. Items in `beginning` are about to be submitted, and count as submitted.
     */
    due: (
      runId: number,
      limit: number,
      parked: Parked,
      heads: readonly Head[] | null,
      beginning: readonly number[] = [],
    ): Promise<Due> =>
      read(function* () {
        const found = yield* due(sql, runId, limit, parked, heads);
        if (beginning.length === 0) return found;
        const begun = (yield* sql(notYetIntended).value({ beginning: JSON.stringify(beginning) })) as number;
        const { planned, submitting } = found.counts;
        return {
          ...found,
          counts: { ...found.counts, planned: planned - begun, submitting: submitting + begun },
        };
      }),
    /** The price groups of a run's items, one entry for each planned price. */
    groups: (runId: number): Promise<RunGroup[]> =>
      read(function* () {
        return (yield* sql(
          `WITH charges AS (
           SELECT price_group, max(charged) AS highest FROM run_groups JOIN runs ON runs.id = run_id
           WHERE origin = (SELECT origin FROM runs WHERE id = @runId) GROUP BY price_group
         )
         SELECT price_group AS "group", price, max(model) AS model, max(category) AS category, sum(items) AS planned,
           max(highest) AS charged
         FROM run_groups LEFT JOIN charges USING (price_group)
         WHERE run_id = @runId GROUP BY price_group, price ORDER BY price_group, price`,
        ).all({ runId })) as RunGroup[];
      }),
    /** The planned items of a run that are not parked, counted. */
    waiting: (runId: number, parked: Parked): Promise<WaitingGroup[]> =>
      read(() => waiting(sql, runId, parked)),

    counts: (runId: number): Promise<Record<ItemState, number>> => ask(() => changes.counts(runId)),
    /** All items of the workspace, of runs or of none. */
    countAll: (): Promise<Record<ItemState, number>> => read(() => countsOfAll(sql)),

    /**
     * Credits of the run, or of one of its models: those charged for good, and those that are or may be charged. Items in
     * `beginning` are about to be submitted, and count from then on.
     */
    spending: (runId: number, of?: { model?: string; beginning?: readonly number[] }): Promise<Spending> =>
      read(function* () {
        return yield* spending(sql, runId, of);
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

const spent = `
  SELECT coalesce(sum(charged), 0) AS charged, coalesce(sum(pending), 0) AS pending,
    coalesce(sum(at_service), 0) AS atService, coalesce(sum(tasks), 0) AS tasks, coalesce(sum(in_doubt), 0) AS inDoubt
  FROM run_spending WHERE run_id = @runId`;
const spentOf = `${spent} AND model = @model`;
// An item that has left this state has an attempt, which is counted above.
const areBegun =
  "FROM items WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(@beginning)) AND state = 'planned'";
const notYetIntended = `SELECT count(*) ${areBegun}`;
const begun = `SELECT coalesce(sum(price), 0) ${areBegun}`;
const begunOf = `${begun} AND model = @model`;

/**
 * Credits of a run. An attempt without an answer counts with its price until it is settled, because it may turn out to have
 * been charged, and a cap must hold even then.
 */
function* spending(
  sql: Queries,
  runId: number,
  { model, beginning = [] }: { model?: string; beginning?: readonly number[] } = {},
): Script<Spending> {
  const found = (
    model === undefined ? yield* sql(spent).get({ runId }) : yield* sql(spentOf).get({ runId, model })
  ) as Spending;
  if (beginning.length === 0) return found;
  const ids = { beginning: JSON.stringify(beginning) };
  const prices =
    model === undefined ? yield* sql(begun).value(ids) : yield* sql(begunOf).value({ ...ids, model });
  return { ...found, pending: plus(found.pending, prices as Credits) };
}

/**
 * What a run has to do soon. The loop asks at every turn, with up to many thousands of items, so each part reads its own
 * range of an index in order, up to the limit. SQLite does not do that for states joined by OR, hence the unions; and it
 * plans a statement again when a bare parameter after LIMIT is bound, hence the sums.
 */
const ofRun = "FROM items WHERE run_id = @runId AND state =";
const first = "LIMIT @limit + 0";

const time = "id, next_at AS nextAt";
const task = (kind: string) =>
  `SELECT ${time}, price_group AS "group", '${kind}' AS kind, coalesce(accepted_at, 0) AS since, seen_at AS seenAt`;
const tasks = `
  ${task("processing")} ${ofRun} 'processing' UNION ALL ${task("overdue")} ${ofRun} 'overdue'
  UNION ALL ${task("expired")} ${ofRun} 'ready' AND expired = 1 ORDER BY nextAt, id LIMIT @tasksMax + 0`;
/** The most tasks that are compared at a turn: more than any limited plan can poll. */
const tasksMax = 2_000;
const ready = `SELECT ${time}, fetch_by AS fetchBy ${ofRun} 'ready' AND expired = 0 ORDER BY next_at, fetch_by, id ${first}`;
const expired = `SELECT count(*) ${ofRun} 'ready' AND expired = 1`;
const isParked =
  "(model IN (SELECT value FROM json_each(@models)) OR (price_group, price) IN (SELECT value ->> 'group', CAST(value ->> 'price' AS INTEGER) FROM json_each(@prices)))";
const plannedItem = `SELECT ${time}, price, price_group AS "group", priority, position ${ofRun} 'planned'`;
const allPlanned = `${plannedItem} ORDER BY priority DESC, position ${first}`;
const headItems = (condition: string) =>
  `${plannedItem} AND price_group = @group AND priority = @priority ${condition} ORDER BY position ${first}`;
const allOfHead = headItems("");
const unparkedOfHead = headItems(`AND NOT ${isParked}`);
const plannedGroups = "FROM run_groups WHERE run_id = @runId AND items > 0";
const groups = (condition: string) =>
  `SELECT price_group AS "group", priority, sum(items) AS items, sum(items * price) AS credits
   ${plannedGroups} ${condition} GROUP BY price_group, priority`;
const allGroups = groups("");
const unparkedGroups = groups(`AND NOT ${isParked}`);
const parked = `SELECT coalesce(sum(items), 0) ${plannedGroups} AND ${isParked}`;
const noItems = Object.fromEntries(itemStates.map((state) => [state, 0])) as Record<ItemState, number>;

function* countsOf(sql: Queries, runId: number): Script<Record<ItemState, number>> {
  return counted(yield* sql("SELECT state, items AS n FROM run_states WHERE run_id = ?").all(runId));
}

function* countsOfAll(sql: Queries): Script<Record<ItemState, number>> {
  return counted(yield* sql("SELECT state, count(*) AS n FROM items GROUP BY state").all());
}

function counted(rows: unknown[]): Record<ItemState, number> {
  const counts = { ...noItems };
  for (const { state, n } of rows as { state: ItemState; n: number }[]) counts[state] = n;
  return counts;
}

/** At most `limit` items of each kind, and of planned items as many for each head. Empty kinds are not queried. */
function* due(
  sql: Queries,
  runId: number,
  limit: number,
  stopped: Parked,
  heads: readonly Head[] | null,
): Script<Due> {
  const head = { runId, limit };
  const { nothingParked, kept } = keptBack(stopped);
  function* ofHead({ group, priority }: Head): Script<PlannedSubmit[]> {
    const named = { ...head, group, priority };
    const rows = nothingParked
      ? yield* sql(allOfHead).all(named)
      : yield* sql(unparkedOfHead).all({ ...named, ...kept });
    return rows as PlannedSubmit[];
  }
  function* ofHeads(all: readonly Head[]): Script<PlannedSubmit[]> {
    const found: PlannedSubmit[] = [];
    for (const one of all) found.push(...(yield* ofHead(one)));
    return found;
  }
  // However many items are parked, none of them is read: the others are gathered from the heads of their groups.
  function* inOrder(): Script<PlannedSubmit[]> {
    if (nothingParked) return (yield* sql(allPlanned).all(head)) as PlannedSubmit[];
    return (yield* ofHeads(yield* waiting(sql, runId, stopped)))
      .sort((a, b) => b.priority - a.priority || a.position - b.position)
      .slice(0, limit);
  }
  const counts = yield* countsOf(sql, runId);
  const hasTasks = counts.processing + counts.overdue + counts.ready > 0;
  return {
    counts,
    planned: counts.planned === 0 ? [] : heads === null ? yield* inOrder() : yield* ofHeads(heads),
    tasks: hasTasks ? yield* sql(tasks).all({ runId, tasksMax }) : [],
    ready: counts.ready > 0 ? yield* sql(ready).all(head) : [],
    expired: counts.ready > 0 ? yield* sql(expired).value({ runId }) : 0,
    parked: nothingParked || counts.planned === 0 ? 0 : yield* sql(parked).value({ runId, ...kept }),
  } as Due;
}

/** The planned items that may be submitted, counted by group and priority. */
function* waiting(sql: Queries, runId: number, stopped: Parked): Script<WaitingGroup[]> {
  const { nothingParked, kept } = keptBack(stopped);
  const rows = nothingParked
    ? yield* sql(allGroups).all({ runId })
    : yield* sql(unparkedGroups).all({ runId, ...kept });
  return rows as WaitingGroup[];
}

function keptBack({ models, prices }: Parked) {
  return {
    nothingParked: models.length + prices.length === 0,
    kept: { models: JSON.stringify(models), prices: JSON.stringify(prices) },
  };
}
