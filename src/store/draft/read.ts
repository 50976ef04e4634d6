import { type Credits, noCredits, plus } from "../../core/money.js";
import type {
  Choice,
  DraftCounts,
  GroupSum,
  Ordered,
  PlannedItem,
  PlannedState,
  Totals,
} from "../../core/ports/draft.js";
import type { Sheet, SheetRow } from "../../core/ports/store.js";
import type { Sql, Sqlite } from "../../sqlite.js";
import type { Listing } from "../../text/listing.js";
import type { DraftPlanned, DraftProgress } from "./tables.js";

type Row = Record<string, unknown>;

/** The rows of a query: counted on demand, and read one by one as often as needed. */
export function listing<Thing>(
  db: Sqlite,
  query: string,
  asThing: (row: Row) => Thing = (row) => row as Thing,
  values: readonly unknown[] = [],
): Listing<Thing> {
  let length: number | null = null;
  return {
    get length() {
      const count = () => db.prepare(`SELECT count(*) FROM (${query})`).pluck();
      length ??= count().get(...values) as number;
      return length;
    },
    *[Symbol.iterator]() {
      // A statement of its own: a statement that is being read cannot be read twice at the same time.
      for (const row of db.prepare(query).iterate(...values)) yield asThing(row as Row);
    },
  };
}

/** The totals of a plan. */
export function draftReading(db: Sqlite, sql: Sql, progress: DraftProgress) {
  return { ...facts(db, sql, progress), ...lists(db, progress) };
}

function facts(db: Sqlite, sql: Sql, progress: DraftProgress) {
  const count = (from: string) => sql(`SELECT count(*) FROM ${from}`).value() as number;
  let isIndexed = false;
  const positionOf = (key: string): number | null => {
    if (!isIndexed) db.exec("CREATE INDEX IF NOT EXISTS drafted_key ON drafted (key) WHERE key IS NOT NULL");
    isIndexed = true;
    return (sql("SELECT position FROM drafted WHERE key = ?").value(key) as number | undefined) ?? null;
  };
  return {
    counts: (): DraftCounts => ({
      rows: progress.rows,
      known: count("known"),
      open: count("known WHERE state IN ('submitting', 'processing', 'overdue')"),
      hidden: count("problems WHERE hidden"),
      toApprove: progress.approves ? count("planned WHERE approve AND wanted AND due") : 0,
    }),

    /** The number of wanted items; valid once wanted rows and states are known. */
    totals: (): Totals => progress.tally.totals() ?? totalsOf(db),

    missing: (): { rowId: string; key: string; price: Credits }[] =>
      sql(
        `SELECT d.row_id AS rowId, d.key, d.price FROM planned d JOIN known k ON k.key = d.key
         WHERE k.missing AND d.wanted ORDER BY d.position`,
      ).all() as { rowId: string; key: string; price: Credits }[],

    /** The position of the item of this key. */
    positionOf,
    /** Whether some row of the sheet has the item with this key. */
    holds: (key: string): boolean => positionOf(key) !== null,
  };
}

interface Part extends GroupSum {
  state: PlannedState;
  inDoubt: Credits;
}

/** One pass over all records: with a million of them each pass takes time. */
function totalsOf(db: Sqlite): Totals {
  const parts = db
    .prepare(
      `SELECT price_group AS "group", state, count(*) AS items, sum(due) AS due, max(price) AS price,
         sum(due * price) AS credits, sum((state IN ('submitting', 'unknown')) * price) AS inDoubt
       FROM planned WHERE wanted GROUP BY price_group, state ORDER BY min(position)`,
    )
    .all() as Part[];
  const groups = new Map<number, GroupSum>();
  const totals: Totals = { items: 0, due: 0, groups: [], states: {}, inDoubt: noCredits };
  for (const { state, inDoubt, ...part } of parts) {
    totals.items += part.items;
    totals.due += part.due;
    totals.states[state] = (totals.states[state] ?? 0) + part.items;
    totals.inDoubt = plus(totals.inDoubt, inDoubt);
    const group = groups.get(part.group);
    if (group === undefined) groups.set(part.group, part);
    else {
      group.items += part.items;
      group.due += part.due;
      group.price = Math.max(group.price, part.price) as Credits;
      group.credits = plus(group.credits, part.credits);
    }
  }
  return { ...totals, groups: [...groups.values()] };
}

function lists(db: Sqlite, progress: DraftProgress) {
  // A window function over a million rows is slow, and hardly any sheet has priorities.
  const inOrder = () => (progress.prioritised ? "priority DESC, position" : "position");
  const due = `SELECT priority, position, price, number AS rowNumber, row_id AS rowId, price_group AS "group"
    FROM planned WHERE wanted AND due`;
  return {
    /** Wanted items that are due, in the order of submission. */
    *dueInOrder(): Generator<Ordered, void, void> {
      for (const row of db.prepare(`${due} ORDER BY ${inOrder()}`).iterate()) yield row as Ordered;
    },

    lastDue(): Ordered | null {
      const last = inOrder() === "position" ? "position DESC" : "priority, position DESC";
      return (db.prepare(`${due} ORDER BY ${last} LIMIT 1`).get() as Ordered | undefined) ?? null;
    },

    /** Wanted items in the order of the sheet; the credits cover the items up to the last one that fits. */
    items(edition: string, last: Ordered | null, length: number): Listing<PlannedItem> {
      // Without priorities, items are submitted in the order of the sheet.
      const order = inOrder();
      const rank = order === "position" ? "" : `, row_number() OVER (ORDER BY ${order}) - 1 AS place`;
      const query = `SELECT *${rank} FROM planned WHERE wanted ORDER BY position`;
      let next = 0;
      const asItem = (row: Record<string, unknown>) => {
        const record = row as unknown as DraftPlanned & { place?: number };
        return plannedItem(record, { edition, last, order: record.place ?? next++ });
      };
      const found = listing(db, query, asItem);
      return {
        length,
        [Symbol.iterator]() {
          next = 0;
          return found[Symbol.iterator]();
        },
      };
    },

    /** Keys of items that stay as they are. */
    unselected: (): Listing<string> =>
      listing(
        db,
        `SELECT key FROM drafted NOT INDEXED WHERE key IS NOT NULL AND NOT wanted
         UNION ALL SELECT key FROM known WHERE row_id IN (SELECT id FROM wrong_ids)
           AND key NOT IN (SELECT key FROM drafted WHERE key IS NOT NULL)`,
        (row) => row["key"] as string,
      ),

    /** Every row of the sheet with its items. */
    sheet: (columns: readonly string[]): Sheet => ({
      columns,
      rows: { [Symbol.iterator]: () => sheetRows(db) },
    }),
  };
}

function plannedItem(
  record: DraftPlanned,
  { edition, last, order }: { edition: string; last: Ordered | null; order: number },
): PlannedItem {
  const { position, priority } = record;
  const reached =
    last !== null && (priority > last.priority || (priority === last.priority && position <= last.position));
  return {
    key: record.key,
    edition,
    occurrence: record.occurrence,
    variant: 1,
    position,
    priority,
    rowNumber: record.number,
    rowId: record.row_id,
    name: record.name,
    model: record.model,
    category: record.category,
    prompt: record.prompt,
    params: JSON.parse(record.params),
    inputs: JSON.parse(record.inputs),
    ...(record.parents === null ? {} : { parents: JSON.parse(record.parents) }),
    ...filesOf(record),
    ...(record.approve ? { approve: true as const } : {}),
    cells: Object.entries(JSON.parse(record.cells)),
    price: record.price as Credits,
    state: record.state,
    due: record.due === 1,
    order,
    fits: record.due === 1 && reached,
  };
}

/** Local files are inputs that identity counts by their content. */
function filesOf({ contents }: DraftPlanned): Pick<PlannedItem, "files"> {
  if (contents === null || !contents.includes('"sha256:')) return {};
  const all = Object.entries(JSON.parse(contents) as Record<string, string>);
  return { files: Object.fromEntries(all.filter(([, content]) => content.startsWith("sha256:"))) };
}

const records = "SELECT first, number, cells, problem, key, shared, shares FROM drafted ORDER BY position";

interface SheetRecord {
  first: number;
  number: number;
  cells: string | null;
  problem: string | null;
  key: string | null;
  shared: number | null;
  shares: number | null;
}

/** The records of a row follow each other. A row may share the items of another row instead. */
function* sheetRows(db: Sqlite): Generator<SheetRow> {
  const shared = db
    .prepare(
      `SELECT key FROM drafted WHERE key IS NOT NULL AND (position = @shared OR head = @shared)
       ORDER BY position LIMIT @shares`,
    )
    .pluck();
  let sharing = false;
  let row: { number: number; cells: Record<string, string>; keys: string[]; problem: string | null } | null =
    null;
  for (const each of db.prepare(records).iterate()) {
    const { first, number, cells, problem, key, ...group } = each as SheetRecord;
    if (!first) {
      if (key !== null && !sharing) row?.keys.push(key);
      continue;
    }
    if (row !== null) yield row;
    sharing = group.shares !== null;
    const own = key === null ? [] : [key];
    row = {
      number,
      cells: JSON.parse(cells ?? "{}"),
      keys: sharing ? (shared.all({ shared: group.shared, shares: group.shares }) as string[]) : own,
      problem,
    };
  }
  if (row !== null) yield row;
}

/** Which rows of a plan are selected, and the order of their items. */
export function draftChoice(db: Sqlite, sql: Sql, progress: DraftProgress) {
  return {
    /** Selects a part of the rows, and keeps only the problems of these rows. Returns how many rows are selected. */
    choose({ onlyFailed, sample, first, matches }: Choice): number {
      progress.tally.spoil();
      if (onlyFailed) sql(`UPDATE drafted SET chosen = 0 WHERE chosen AND row NOT IN (${failedRows})`).run();
      if (sample !== null) keepFirst(sql, "lot, number", sample);
      if (first !== null) keepFirst(sql, "row", first);
      sql("UPDATE drafted SET wanted = chosen").run();
      shareItems(db, sql);
      sql(
        `UPDATE problems SET hidden = 1 WHERE row IN (SELECT number FROM drafted)
           AND row NOT IN (SELECT number FROM drafted WHERE chosen)`,
      ).run();
      const rows = sql("SELECT count(*) FROM drafted WHERE chosen AND first").value() as number;
      const isFull = first !== null && rows >= first;
      const last = isFull
        ? (sql("SELECT max(number) FROM drafted WHERE chosen").value() as number)
        : Number.POSITIVE_INFINITY;
      const failed = onlyFailed
        ? new Set((sql(failedIds).all() as { id: string }[]).map(({ id }) => id))
        : null;
      hideUnread(
        sql,
        (row) => matches(row) && row.number <= last && (failed === null || failed.has(row.id ?? "")),
      );
      return rows;
    },

    /** Gives every item this priority, or gives the cheapest items the highest priority. */
    reorder(order: "sheet" | "cheapest"): void {
      progress.prioritised = order === "cheapest";
      const rank =
        "(SELECT dense_rank FROM ranks JOIN kinds ON kinds.price = ranks.price WHERE kinds.id = drafted.kind)";
      if (order === "sheet") sql("UPDATE drafted SET priority = 0 WHERE priority <> 0").run();
      else
        sql(
          `WITH ranks AS (SELECT price, dense_rank() OVER (ORDER BY price) AS dense_rank
             FROM (SELECT DISTINCT price FROM planned WHERE wanted))
           UPDATE drafted SET priority = 1 - ${rank} WHERE key IS NOT NULL AND wanted`,
        ).run();
    },
  };
}

/** Hides the problems of rows that could not be read and are not selected. Row 0 stands for the whole file. */
function hideUnread(sql: Sql, matches: Choice["matches"]): void {
  const unread = sql(
    `SELECT id AS problem, row AS number, row_id AS id FROM problems
     WHERE row > 0 AND row NOT IN (SELECT number FROM drafted)`,
  ).all() as { problem: number; number: number; id: string | null }[];
  for (const { problem, ...row } of unread)
    if (!matches(row)) sql("UPDATE problems SET hidden = 1 WHERE id = ?").run(problem);
}

/**
 * Rows with a failed item, and fixed rows whose earlier item failed. A fixed row counts until its new item is made.
 */
const failedRows = `
  SELECT d.row FROM planned d JOIN known k ON k.key = d.key WHERE k.state = 'failed'
  UNION
  SELECT row FROM planned WHERE row_id IN (SELECT row_id FROM known WHERE state = 'failed')
    AND row NOT IN (SELECT d.row FROM drafted d JOIN known k ON k.key = d.key)
  UNION
  SELECT row FROM drafted WHERE key IS NULL AND id IN (SELECT row_id FROM known WHERE state = 'failed')
`;

const failedIds = "SELECT row_id AS id FROM known WHERE state = 'failed'";

function keepFirst(sql: Sql, order: string, count: number): void {
  sql(
    `UPDATE drafted SET chosen = 0 WHERE chosen AND row NOT IN
       (SELECT row FROM drafted WHERE chosen AND first ORDER BY ${order} LIMIT ?)`,
  ).run(count);
}

/** A row that shares the items of another row selects them whether or not that other row is selected. */
function shareItems(db: Sqlite, sql: Sql): void {
  db.exec("CREATE INDEX IF NOT EXISTS drafted_shared ON drafted (shared) WHERE shared IS NOT NULL");
  sql(
    `UPDATE drafted SET wanted = 1 WHERE NOT wanted AND key IS NOT NULL AND EXISTS (
       SELECT 1 FROM drafted sharing WHERE sharing.chosen AND sharing.shares IS NOT NULL
         AND sharing.shared = coalesce(drafted.head, drafted.position) AND drafted.occurrence <= sharing.shares)`,
  ).run();
}
