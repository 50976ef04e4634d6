import { type ItemState, itemStates } from "../../core/item.js";
import { type Credits, plus } from "../../core/money.js";
import type { Due, Head, Parked, PlannedSubmit, RunGroup, WaitingGroup } from "../../core/next/next.js";
import type { Spending } from "../../core/ports/store.js";
import type { Database, Queries, Script } from "../script.js";

/** What a run has to do, and what it has spent. */
export function dueMethods({ read, ask, sql }: Database) {
  return {
    /**
     * What a run has to do soon: counts of its items, the open tasks that are due first, and at most `limit` items of each other
     * kind. Of the planned items that are not parked, it returns this many for each head; with `heads` null, the first by priority
     * and then in the manifest's order. Items in `beginning` are about to be submitted, and count as submitted.
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
        const begun = (yield* sql(countOfBegun).value({ beginning: JSON.stringify(beginning) })) as number;
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

    counts: (runId: number): Promise<Record<ItemState, number>> => ask(() => countsOf(sql, runId)),
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
  };
}

const spent = `
  SELECT coalesce(sum(charged), 0) AS charged, coalesce(sum(pending), 0) AS pending,
    coalesce(sum(at_service), 0) AS atService, coalesce(sum(tasks), 0) AS tasks, coalesce(sum(in_doubt), 0) AS inDoubt
  FROM run_spending WHERE run_id = @runId`;
const spentOf = `${spent} AND model = @model`;
// An item that has left this state has an attempt, which is counted above.
const ofBegun =
  "FROM items WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(@beginning)) AND state = 'planned'";
const countOfBegun = `SELECT count(*) ${ofBegun}`;
const priceOfBegun = `SELECT coalesce(sum(price), 0) ${ofBegun}`;
const priceOfBegunOf = `${priceOfBegun} AND model = @model`;

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
    model === undefined
      ? yield* sql(priceOfBegun).value(ids)
      : yield* sql(priceOfBegunOf).value({ ...ids, model });
  return { ...found, pending: plus(found.pending, prices as Credits) };
}

// What a run has to do soon. The loop asks at every turn, with up to many thousands of items, so each part reads its own range of
// an index in order, up to the limit. SQLite does not do that for states joined by OR, hence the unions; and it plans a statement
// again when a bare parameter after LIMIT is bound, hence the `+ 0`.
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

/** How many items of a run are in each state. */
export function* countsOf(sql: Queries, runId: number): Script<Record<ItemState, number>> {
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
