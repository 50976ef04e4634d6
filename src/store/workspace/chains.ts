import { uncollectedStates } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Addresses, BlockedItem, HandedOn, ParentOutput } from "../../core/ports/store.js";
import { alone, type Database, type InTransaction, listed, type Script } from "../script.js";
import { applyTransition, releasedFirst } from "./transition.js";

/** The item that an input of `items` comes from, and its output, if they exist. */
const withOutputs = `
  LEFT JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
  LEFT JOIN outputs ON outputs.item_id = parent.id AND outputs.number = parents.output`;
const isAtHand = `CASE parents.field WHEN 'canary' THEN parent.state = 'archived'
  ELSE parent.state IN ('ready', 'archived') AND outputs.url <> '' END
  AND coalesce(parent.approval, 'approved') = 'approved'`;
/** For a blocked item: whether all of its parents are ready or archived, and approved if approval is required. */
const mayGo = (condition: string) => `items.state = 'blocked' AND items.run_id IS NOT NULL
  AND EXISTS (SELECT 1 FROM parents WHERE item_id = items.id) AND items.unpublished = 0
  AND NOT EXISTS (SELECT 1 FROM parents ${withOutputs} WHERE parents.item_id = items.id
    AND (NOT coalesce(${isAtHand}, FALSE) OR ${condition}))`;

// The order matters: a job may have far more items than a parent has children.
const children = (columns: string) => `
  SELECT DISTINCT ${columns} FROM items parent CROSS JOIN parents children ON children.parent_key = parent.key
    CROSS JOIN items ON items.id = children.item_id AND items.job_id = parent.job_id WHERE parent.id = @id`;
const releasableChildren = `${children("items.id, items.run_id AS runId")} AND ${mayGo("FALSE")}`;
const releasableOfRun = `SELECT items.id, items.run_id AS runId FROM items WHERE items.run_id = @runId
  AND ${mayGo("(parents.field <> 'canary' AND parent.id IN (SELECT CAST(value AS INTEGER) FROM json_each(@stale)))")}`;
const handedOn = `
  SELECT parent.id, outputs.url, parent.addressed_at AS addressedAt
  FROM items JOIN parents ON parents.item_id = items.id AND parents.field <> 'canary' ${withOutputs}
  WHERE items.run_id = @runId AND ${mayGo("FALSE")}
  GROUP BY parent.id, outputs.url, parent.addressed_at ORDER BY max(items.priority) DESC, min(items.position)`;
const parentColumns = `
  parents.field, parents.parent_key AS key, parents.output, parent.id, parent.row_id AS rowId, parent.state,
  parent.approval, parent.note, outputs.url, parent.addressed_at AS addressedAt,
  (SELECT count(*) FROM outputs WHERE item_id = parent.id) AS outputs`;
const parentsOfItem = `SELECT ${parentColumns}
  FROM items JOIN parents ON parents.item_id = items.id ${withOutputs} WHERE items.id = @id ORDER BY parents.field`;
const blockedOfRun = `
  SELECT id, row_id AS rowId, row_number AS rowNumber, note FROM items
  WHERE run_id = @runId AND state = 'blocked' ORDER BY position, id`;

/** Blocked items that could not be published, or have a note about the output that they use. */
const inTroubleOfRun = `
  SELECT id, (SELECT count(*) FROM parents WHERE item_id = items.id) AS parents FROM items
  WHERE run_id = @runId AND state = 'blocked' AND (unpublished = 1 OR note IS NOT NULL)`;
const unblockable = `
  SELECT 1 FROM items WHERE run_id = @runId AND state = 'blocked'
    AND (unpublished = 1 OR EXISTS (SELECT 1 FROM parents WHERE item_id = items.id AND field = 'canary'))`;

/** Blocked items, except for those that wait, directly or through others, for an item that this run does not make. */
const restOfBlocked = `
  WITH RECURSIVE stuck (id) AS (
    SELECT items.id FROM items JOIN parents ON parents.item_id = items.id AND parents.field <> 'canary'
      LEFT JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
    WHERE items.run_id = @runId AND items.state = 'blocked'
      AND (parent.id IS NULL OR coalesce(parent.approval, 'approved') <> 'approved'
        OR (parent.state IN ('planned', 'blocked') AND coalesce(parent.run_id, 0) <> @runId)
        OR (parent.state IN ('failed', 'held', 'dropped')
          AND parent.id NOT IN (SELECT CAST(value AS INTEGER) FROM json_each(@again))))
    UNION
    SELECT child.id FROM stuck JOIN items USING (id) JOIN parents ON parents.parent_key = items.key
      JOIN items child ON child.id = parents.item_id AND child.job_id = items.job_id AND child.state = 'blocked')
  SELECT count(*) AS items, coalesce(sum(price), 0) AS credits FROM items
  WHERE run_id = @runId AND state = 'blocked' AND id NOT IN (SELECT id FROM stuck)`;

/** Items that wait for other items: for those whose outputs they use, or for the canary of their price group. */
export function chainMethods(connection: Database) {
  const { atomic, read, sql, clock } = connection;
  function* parentsOf(id: number): Script<ParentOutput[]> {
    return (yield* sql(parentsOfItem).all({ id })) as ParentOutput[];
  }

  return {
    /** The parents of an item, one for each input that is another item's output. */
    parentsOf: (itemId: number): Promise<ParentOutput[]> => read(() => parentsOf(itemId)),

    /** The ready or archived parents of a run's blocked items, with the addresses of the outputs that the items use. */
    handingOn: (runId: number): Promise<HandedOn[]> =>
      read(function* () {
        return (yield* sql(handedOn).all({ runId })) as HandedOn[];
      }),

    /**
     * Releases the blocked items of a run whose parents are all ready or archived, and none of them in `stale`. Returns
     * how many it released. Items are also released as soon as the URLs of their last parent arrive.
     */
    release: async (runId: number, stale: readonly number[]): Promise<number> =>
      atomic(function* () {
        const values = { runId, stale: JSON.stringify(stale) };
        return (yield* releaseAll(connection, releasableOfRun, values)).length;
      }),

    /**
     * The blocked items of a run that are made once the run goes on, and their price. Not those that wait for an item that
     * failed, is held or dropped, or that a person has not approved, except for `again`: these are made again.
     */
    blockedRest: (runId: number, again: readonly number[]): Promise<{ items: number; credits: Credits }> =>
      read(function* () {
        const found = yield* sql(restOfBlocked).get({ runId, again: JSON.stringify(again) });
        return found as { items: number; credits: Credits };
      }),

    /** A planned item goes back to wait for its parents. */
    wait: async (itemId: number): Promise<void> => atomic(() => wait(connection, itemId)),

    /** A planned item waits until `publishAgain` is called: its local file cannot be published, for this reason. */
    unpublished: async (itemId: number, reason: string): Promise<void> =>
      atomic(function* () {
        yield* wait(connection, itemId);
        yield* sql("UPDATE items SET unpublished = 1, note = ? WHERE id = ?").run(
          `cannot be published: ${reason}`,
          itemId,
        );
      }),

    /** Whether blocked items of the run wait for something that a resume tries again: publishing or a canary. */
    mayUnblock: (runId: number): Promise<boolean> =>
      read(function* () {
        return (yield* sql(unblockable).get({ runId })) !== undefined;
      }),

    /** Lets the run's items whose inputs could not be published or handed on try again, and forgets the reasons. */
    async publishAgain(runId: number): Promise<void> {
      const found = await read(() => sql(inTroubleOfRun).all({ runId }));
      const rows = found as { id: number; parents: number }[];
      if (rows.length === 0) return;
      await atomic(function* () {
        for (const { id, parents } of rows) {
          yield* sql("UPDATE items SET unpublished = 0, note = NULL WHERE id = ?").run(id);
          if (parents === 0) yield* applyTransition(connection, id, "released");
        }
      });
    },

    /** Where a content was published to, if that is known. */
    publishedAt: (target: string, sha256: string): Promise<{ url: string; until: number | null } | null> =>
      read(function* () {
        const at = yield* sql("SELECT url, until FROM published WHERE target = ? AND sha256 = ?").get(
          target,
          sha256,
        );
        return (at as { url: string; until: number | null } | undefined) ?? null;
      }),

    keepPublished: async (
      target: string,
      sha256: string,
      { url, until }: { url: string; until: number | null },
    ): Promise<void> =>
      atomic(function* () {
        yield* sql(
          `INSERT INTO published (target, sha256, url, until) VALUES (?, ?, ?, ?)
           ON CONFLICT (target, sha256) DO UPDATE SET url = excluded.url, until = excluded.until`,
        ).run(target, sha256, url, until);
      }),

    /** New signed URLs for the outputs of an item that is ready or archived. */
    renewed: async (itemId: number, { urls }: Addresses): Promise<void> =>
      atomic(function* () {
        yield* sql("UPDATE items SET addressed_at = ? WHERE id = ?").run(clock.now(), itemId);
        for (const [index, url] of urls.entries())
          yield* sql("UPDATE outputs SET url = ? WHERE item_id = ? AND number = ?").run(
            url,
            itemId,
            index + 1,
          );
        yield* releaseChildren(connection, itemId);
      }),

    /** Records for the blocked children of an item why they cannot have its outputs. */
    noteChildren: async (itemId: number, note: string): Promise<void> =>
      atomic(function* () {
        yield* sql(
          `UPDATE items SET note = @note WHERE state = 'blocked' AND id IN (${children("items.id")} AND children.field <> 'canary')`,
        ).run({
          id: itemId,
          note,
        });
      }),

    /** The blocked items of a run in the manifest's order, each with all its parents. */
    blocked: (runId: number): Promise<BlockedItem[]> =>
      read(function* () {
        const items: BlockedItem[] = [];
        const rows = (yield* sql(blockedOfRun).all({ runId })) as (Omit<BlockedItem, "parents"> & {
          id: number;
        })[];
        for (const { id, ...item } of rows) items.push({ ...item, parents: yield* parentsOf(id) });
        return items;
      }),

    /**
     * With a canary, the first item of each price group, in the order of chains, is made before the others, which are
     * blocked until it is archived. A group with an archived item (approved, if approval is required) needs no canary.
     * Items that waited for an earlier canary are released from it first.
     */
    canaries: async (runId: number, wanted: boolean): Promise<void> =>
      atomic(function* () {
        yield* forgetCanaries(connection, runId);
        if (wanted) yield* chooseCanaries(connection, runId);
      }),
  };
}

/** A planned item is blocked. Call it inside a transaction. */
function* wait(connection: InTransaction, itemId: number): Script<void> {
  yield* applyTransition(connection, itemId, "waits");
  const first = releasedFirst;
  yield* connection
    .sql("UPDATE items SET priority = priority - @first WHERE id = @itemId AND priority >= @first / 2")
    .run({ itemId, first });
}

/**
 * Releases the blocked children of an item whose URLs have just arrived, or which was archived or approved. Call it
 * inside a transaction. Returns the run of each item that it released.
 */
export function* releaseChildren(connection: InTransaction, itemId: number): Script<number[]> {
  yield* alone();
  return yield* releaseAll(connection, releasableChildren, { id: itemId });
}

function* releaseAll(connection: InTransaction, query: string, values: object): Script<number[]> {
  const { sql } = connection;
  const found = (yield* sql(query).all(values)) as { id: number; runId: number }[];
  for (const { id } of found) {
    yield* applyTransition(connection, id, "released");
    yield* sql(
      "UPDATE items SET next_at = 0, note = NULL, priority = priority + CASE WHEN priority < @first / 2 THEN @first ELSE 0 END WHERE id = @id",
    ).run({ id, first: releasedFirst });
  }
  return found.map(({ runId }) => runId);
}

const isMade = "state = 'archived' AND coalesce(approval, 'approved') = 'approved'";
const mayBeFirst = `(state IN ('planned', 'blocked', ${listed(uncollectedStates)}) OR (state = 'archived' AND approval = 'waiting'))`;

/**
 * How many items must be made before an item. Canaries are chosen by this depth, because a canary that waited for the
 * others of its group would never be made: each item waits for items of a lower depth, or for a canary of its own depth
 * or lower.
 */
const depths = `
  depths (id, depth) AS (
    SELECT id, 0 FROM items WHERE run_id = @runId AND state IN ('planned', 'blocked') AND NOT EXISTS (
      SELECT 1 FROM parents JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
      WHERE parents.item_id = items.id AND parent.run_id = @runId AND parent.state IN ('planned', 'blocked'))
    UNION
    SELECT child.id, depth + 1 FROM depths JOIN items USING (id)
      JOIN parents ON parents.parent_key = items.key
      JOIN items child ON child.id = parents.item_id AND child.job_id = items.job_id AND child.run_id = @runId
        AND child.state = 'blocked')`;
const canariesOfRun = `
  WITH RECURSIVE ${depths},
  candidates AS (
    SELECT key, price_group, row_number() OVER (
        PARTITION BY price_group
        ORDER BY state IN ('planned', 'blocked'), coalesce(depth, 0), priority DESC, position, items.id
      ) AS place
    FROM items LEFT JOIN (SELECT id, max(depth) AS depth FROM depths GROUP BY id) deepest ON deepest.id = items.id
    WHERE run_id = @runId AND ${mayBeFirst}
      AND price_group NOT IN (SELECT price_group FROM items WHERE run_id = @runId AND ${isMade}))
  SELECT key, price_group AS "group" FROM candidates WHERE place = 1`;
const others = `
  SELECT id, state FROM items
  WHERE run_id = @runId AND price_group = @group AND key <> @key AND state IN ('planned', 'blocked')`;
// The order matters: few items have a canary, and a run may have a million items.
const withCanary = `
  SELECT id, state FROM parents CROSS JOIN items ON items.id = parents.item_id
  WHERE field = 'canary' AND run_id = @runId`;

function* forgetCanaries(connection: InTransaction, runId: number): Script<void> {
  const { sql } = connection;
  for (const { id, state } of (yield* sql(withCanary).all({ runId })) as { id: number; state: string }[]) {
    yield* sql("DELETE FROM parents WHERE item_id = ? AND field = 'canary'").run(id);
    if (state !== "blocked") continue;
    const waits = yield* sql(
      `SELECT CASE WHEN unpublished = 1 OR EXISTS (SELECT 1 FROM parents WHERE item_id = items.id) THEN 1 ELSE 0 END
       FROM items WHERE id = ?`,
    ).value(id);
    if (waits === 0) yield* applyTransition(connection, id, "released");
  }
}

function* chooseCanaries(connection: InTransaction, runId: number): Script<void> {
  const { sql } = connection;
  const canaries = (yield* sql(canariesOfRun).all({ runId })) as { key: string; group: string }[];
  for (const { key, group } of canaries) {
    for (const { id, state } of (yield* sql(others).all({ runId, group, key })) as {
      id: number;
      state: string;
    }[]) {
      yield* sql("INSERT INTO parents (item_id, field, parent_key, output) VALUES (?, 'canary', ?, 1)").run(
        id,
        key,
      );
      if (state === "planned") yield* wait(connection, id);
    }
  }
}
