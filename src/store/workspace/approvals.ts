import { variantKey } from "../../core/identity.js";
import type { Credits } from "../../core/money.js";
import type { Approval } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import type { Database, InTransaction, Script } from "../script.js";
import { releaseChildren } from "./chains.js";

const waiting = `
  SELECT id, row_id AS rowId, row_number AS rowNumber FROM items
  WHERE run_id = @runId AND approval = 'waiting' AND state = 'archived' ORDER BY position, id`;
const rejected = `
  WITH RECURSIVE without (id) AS (
    SELECT id FROM items WHERE run_id = @runId AND approval = 'rejected'
    UNION
    SELECT child.id FROM without JOIN items USING (id) JOIN parents ON parents.parent_key = items.key
      JOIN items child ON child.id = parents.item_id AND child.job_id = items.job_id AND child.state = 'blocked')
  SELECT count(*) FROM items WHERE state = 'blocked' AND run_id = @runId AND id IN (SELECT id FROM without)`;

export function approvalChanges(connection: InTransaction) {
  const { sql } = connection;
  return {
    *approve(itemIds: readonly number[], approval: "approved" | "rejected"): Script<readonly number[]> {
      const released: number[] = [];
      for (const id of itemIds) {
        yield* sql("UPDATE items SET approval = ? WHERE id = ?").run(approval, id);
        if (approval === "rejected") {
          yield* askForOthers(connection, id);
          continue;
        }
        yield* standIn(connection, id);
        released.push(...(yield* releaseChildren(connection, id)));
      }
      return released;
    },
  };
}

/** A person's decisions about archived items, and their picks. A pick never changes what is made or paid. */
export function approvalMethods(connection: Database) {
  const { atomic, read, sql } = connection;
  const { approve } = approvalChanges(connection);
  return {
    /** Archived items of the run that wait for a person's approval, in the manifest's order. */
    awaitingApproval: (runId: number): Promise<{ id: number; rowId: string; rowNumber: number }[]> =>
      read(function* () {
        return (yield* sql(waiting).all({ runId })) as { id: number; rowId: string; rowNumber: number }[];
      }),

    /** How many items of the run are blocked, directly or through other items, by an item that a person rejected. */
    blockedByRejection: (runId: number): Promise<number> =>
      read(function* () {
        return (yield* sql(rejected).value({ runId })) as number;
      }),

    /**
     * A person approves archived items, or rejects them. The blocked children of a row use the outputs of the row's item
     * that was approved last, and are released. Returns the run of each released item.
     */
    approve: async (
      itemIds: readonly number[],
      approval: "approved" | "rejected",
    ): Promise<readonly number[]> => atomic(() => approve(itemIds, approval)),

    /** Ids of the items that a person has picked. */
    picks: (): Promise<Set<number>> =>
      read(function* () {
        const rows = (yield* sql("SELECT item_id AS id FROM picks ORDER BY item_id").all()) as {
          id: number;
        }[];
        return new Set(rows.map(({ id }) => id));
      }),

    /**
     * Archived items that were made of another take of this item's row, and that have no take made of this one, or waiting for
     * a take of that row: what a person has chosen is not in them.
     */
    madeOfOthers: (itemId: number): Promise<MadeOfOther[]> =>
      read(function* () {
        const item = (yield* sql(variantNumbered).get(itemId)) as Variant;
        const others = (yield* keysOfRow({ sql }, item)).filter((key) => key !== item.key);
        const values = { jobId: item.jobId, key: item.key, others: JSON.stringify(others) };
        return others.length === 0 ? [] : ((yield* sql(usersOfOthers).all(values)) as MadeOfOther[]);
      }),

    /** The archived items of a job that were made of these ones, directly or through others, by their ids in the sheet. */
    madeOf: (jobId: number, keys: readonly string[]): Promise<string[]> =>
      read(function* () {
        const these = "job_id = @jobId AND key IN (SELECT value FROM json_each(@keys))";
        const rows = (yield* sql(`${madeOfThese(these)}
          SELECT items.row_id AS "rowId" FROM made JOIN items USING (id) WHERE made.depth = 1
            AND items.state = 'archived' AND items.vanished = 0 ORDER BY items.position, items.variant`).all({
          jobId,
          keys: JSON.stringify(keys),
        })) as { rowId: string }[];
        return rows.map(({ rowId }) => rowId);
      }),

    /** The keys of a job's items that were made of rejected ones, directly or through others. */
    madeOfRejected: (jobId: number): Promise<ReadonlySet<string>> =>
      read(function* () {
        const rows = (yield* sql(`${madeOfThese("job_id = @jobId AND approval = 'rejected'")}
          SELECT items.key FROM made JOIN items USING (id) WHERE made.depth = 1`).all({ jobId })) as {
          key: string;
        }[];
        return new Set(rows.map(({ key }) => key));
      }),

    /** Marks items as picked or not, and changes nothing else. */
    pick: async ({
      picked,
      unpicked,
    }: {
      picked: readonly number[];
      unpicked: readonly number[];
    }): Promise<void> =>
      atomic(function* () {
        for (const id of unpicked) yield* sql("DELETE FROM picks WHERE item_id = ?").run(id);
        for (const id of picked)
          yield* sql("INSERT INTO picks (item_id) VALUES (?) ON CONFLICT DO NOTHING").run(id);
      }),
  };
}

/** `made`: some items (depth 0), and those that use their outputs, directly or through others (depth 1). */
function madeOfThese(some: string): string {
  return `
  WITH RECURSIVE made (id, depth) AS (
    SELECT id, 0 FROM items WHERE ${some}
    UNION
    SELECT child.id, 1 FROM made JOIN items USING (id) JOIN parents ON parents.parent_key = items.key AND parents.field <> 'canary'
      JOIN items child ON child.id = parents.item_id AND child.job_id = items.job_id)`;
}

/** An item, the take that it was made of, and what making it again is expected to cost. */
export interface MadeOfOther {
  rowId: string;
  madeOf: string;
  /** Of that take. */
  approval: Approval | null;
  price: Credits;
  /** Of the item itself. */
  own: Approval | null;
  /** 1 if a person has picked the item, else 0. */
  picks: number;
  /** Its place in the sheet, which its takes have in common. */
  position: number;
  rowNumber: number;
}

const variantNumbered =
  "SELECT job_id AS jobId, key, edition, row_id AS rowId, variant FROM items WHERE id = ?";
const usersOfOthers = `
  SELECT child.row_id AS rowId, parent.row_id AS "madeOf", parent.approval, child.price, child.approval AS own,
    child.position, child.row_number AS "rowNumber", (SELECT count(*) FROM picks WHERE item_id = child.id) AS picks
  FROM items parent JOIN parents ON parents.parent_key = parent.key
    JOIN items child ON child.id = parents.item_id AND child.job_id = parent.job_id
  WHERE parent.job_id = @jobId AND parent.key IN (SELECT value FROM json_each(@others)) AND parents.field <> 'canary'
    AND child.state = 'archived' AND child.vanished = 0 AND NOT EXISTS (
      SELECT 1 FROM parents own JOIN items other ON other.id = own.item_id
      WHERE other.job_id = @jobId AND own.field = parents.field
        AND (own.parent_key = @key
          OR (other.state = 'blocked' AND own.parent_key IN (SELECT value FROM json_each(@others))))
        AND other.position = child.position AND other.row_number = child.row_number)
  ORDER BY child.position, child.variant`;

interface Variant {
  jobId: number;
  key: string;
  edition: string;
  rowId: string;
  variant: number;
}

/** Once a row's own item is rejected, a person decides which of its variants takes its place, also where none had to be approved. */
function* askForOthers({ sql }: Pick<InTransaction, "sql">, itemId: number): Script<void> {
  const item = (yield* sql(variantNumbered).get(itemId)) as Variant;
  if (item.variant > 1) return;
  for (const key of yield* keysOfRow({ sql }, item))
    yield* sql(
      "UPDATE items SET approval = 'waiting' WHERE job_id = ? AND key = ? AND approval IS NULL AND variant > 1",
    ).run(item.jobId, key);
}

/**
 * Items that wait for any variant of the item's row wait for this item from now on. Items that were submitted stay as
 * they are.
 */
function* standIn({ sql }: Pick<InTransaction, "sql">, itemId: number): Script<void> {
  const item = (yield* sql(variantNumbered).get(itemId)) as Variant;
  const keys = yield* keysOfRow({ sql }, item);
  for (const other of keys)
    if (other !== item.key) yield* sql(moveChildren).run({ key: item.key, other, jobId: item.jobId });
}

const moveChildren = `
  UPDATE parents SET parent_key = @key WHERE parent_key = @other AND EXISTS (
    SELECT 1 FROM items WHERE id = parents.item_id AND job_id = @jobId AND state = 'blocked'
      AND NOT EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id))`;
const rejectedParents = `
  SELECT DISTINCT parent.job_id AS jobId, parent.key, parent.edition, parent.row_id AS rowId, parent.variant
  FROM items JOIN parents ON parents.item_id = items.id
    JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
  WHERE items.job_id = @jobId AND items.key IN (SELECT value FROM json_each(@keys)) AND parent.approval = 'rejected'`;

/**
 * Items that were just added wait for the newest approved item of the row instead of for a rejected one. Call it inside a
 * transaction.
 */
export function* replaceRejected(
  connection: InTransaction,
  jobId: number,
  keys: readonly string[],
): Script<void> {
  const { sql } = connection;
  const rejectedOnes = yield* sql(rejectedParents).all({ jobId, keys: JSON.stringify(keys) });
  for (const parent of rejectedOnes as Variant[]) {
    const key = (yield* sql(
      `SELECT key FROM items WHERE job_id = ? AND key IN (SELECT value FROM json_each(?))
         AND approval = 'approved' AND state = 'archived' ORDER BY variant DESC LIMIT 1`,
    ).value(jobId, JSON.stringify(yield* keysOfRow(connection, parent)))) as string | undefined;
    if (key != null) yield* sql(moveChildren).run({ key, other: parent.key, jobId });
  }
}

/** A step may ask for approval only since variants of its rows were made: they can take the place of their rows too. */
export function* askForVariants(
  { sql }: Pick<InTransaction, "sql">,
  jobId: number,
  key: string,
): Script<void> {
  for (let variant = 2; ; variant++) {
    const known = (yield* sql("SELECT id, approval FROM items WHERE job_id = ? AND key = ?").get(
      jobId,
      variantKey(key, variant),
    )) as { id: number; approval: string | null } | undefined;
    if (known === undefined) return;
    if (known.approval === null)
      yield* sql("UPDATE items SET approval = 'waiting' WHERE id = ?").run(known.id);
  }
}

/** The keys of the row's own item and of all its variants; none if the row has another id by now. */
function* keysOfRow({ sql }: Pick<InTransaction, "sql">, item: Variant): Script<string[]> {
  function* isKnown(key: string): Script<boolean> {
    return (
      (yield* sql("SELECT 1 FROM items WHERE job_id = ? AND key = ?").get(item.jobId, key)) !== undefined
    );
  }
  const first = item.variant === 1 ? item.key : yield* originalOf({ sql }, item);
  if (first === null) return [];
  const keys = [first];
  for (let variant = 2; yield* isKnown(variantKey(first, variant)); variant++)
    keys.push(variantKey(first, variant));
  return keys;
}

/** The key of the row's own item, whose variant this is. */
function* originalOf({ sql }: Pick<InTransaction, "sql">, item: Variant): Script<string | null> {
  const found = (yield* sql(
    // A row id has few items, a job has many.
    "SELECT key FROM items WHERE +job_id = ? AND edition = ? AND row_id = ? AND variant = 1",
  ).all(item.jobId, item.edition, rowIdOf(item))) as { key: string }[];
  return found.find(({ key }) => variantKey(key, item.variant) === item.key)?.key ?? null;
}
