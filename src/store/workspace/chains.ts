import type { BlockedItem, HandedOn, ParentOutput, Store } from "../../core/ports/store.js";
import { applyTransition, type InTransaction, releasedFirst, type WorkspaceDatabase } from "./transition.js";

/** Chains: items that take the outputs of other items, and wait for them. */
type ChainMethods = Pick<
  Store,
  | "parentsOf"
  | "handingOn"
  | "release"
  | "wait"
  | "unpublished"
  | "mayUnblock"
  | "publishAgain"
  | "publishedAt"
  | "keepPublished"
  | "renewed"
  | "noteChildren"
  | "blocked"
>;

/** The item that an input of `items` comes from, and its output, where there are such. */
const withOutputs = `
  LEFT JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
  LEFT JOIN outputs ON outputs.item_id = parent.id AND outputs.number = parents.output`;
const isAtHand = `CASE parents.field WHEN 'canary' THEN parent.state = 'archived'
  ELSE parent.state IN ('ready', 'archived') AND outputs.url <> '' END
  AND coalesce(parent.approval, 'approved') = 'approved'`;
/** Of a blocked item: every one of its parents is ready or archived, and approved where that was asked for. */
const mayGo = (condition: string) => `items.state = 'blocked' AND items.run_id IS NOT NULL
  AND EXISTS (SELECT 1 FROM parents WHERE item_id = items.id) AND NOT items.unpublished
  AND NOT EXISTS (SELECT 1 FROM parents ${withOutputs} WHERE parents.item_id = items.id
    AND ((${isAtHand}) IS NOT 1 OR ${condition}))`;

// In this order: a job may have far more items than a parent has children.
const children = `
  SELECT DISTINCT items.id FROM items parent CROSS JOIN parents children ON children.parent_key = parent.key
    CROSS JOIN items ON items.id = children.item_id AND items.job_id = parent.job_id WHERE parent.id = @id`;
const releasableChildren = `${children} AND ${mayGo("0")}`;
const releasableOfRun = `SELECT items.id FROM items WHERE items.run_id = @runId
  AND ${mayGo("(parents.field <> 'canary' AND parent.id IN (SELECT value FROM json_each(@stale)))")}`;
const handedOn = `
  SELECT DISTINCT parent.id, outputs.url, parent.addressed_at AS addressedAt
  FROM items JOIN parents ON parents.item_id = items.id AND parents.field <> 'canary' ${withOutputs}
  WHERE items.run_id = @runId AND ${mayGo("0")} ORDER BY items.priority DESC, items.position`;
const parentColumns = `
  parents.field, parents.parent_key AS key, parents.output, parent.id, parent.row_id AS rowId, parent.state,
  parent.approval, parent.note, outputs.url, parent.addressed_at AS addressedAt,
  (SELECT count(*) FROM outputs WHERE item_id = parent.id) AS outputs`;
const parentsOfItem = `SELECT ${parentColumns}
  FROM items JOIN parents ON parents.item_id = items.id ${withOutputs} WHERE items.id = @id ORDER BY parents.field`;
const blockedOfRun = `
  SELECT id, row_id AS rowId, row_number AS rowNumber, note FROM items
  WHERE run_id = @runId AND state = 'blocked' ORDER BY position, id`;

const unpublishedOfRun = `
  SELECT id, (SELECT count(*) FROM parents WHERE item_id = items.id) AS parents FROM items
  WHERE run_id = @runId AND state = 'blocked' AND unpublished`;
const unblockable = `
  SELECT 1 FROM items WHERE run_id = @runId AND state = 'blocked'
    AND (unpublished OR EXISTS (SELECT 1 FROM parents WHERE item_id = items.id AND field = 'canary'))`;

export function chainMethods(connection: WorkspaceDatabase): ChainMethods {
  const { atomic, sql, clock } = connection;
  const parentsOf = (id: number) => sql(parentsOfItem).all({ id }) as ParentOutput[];

  return {
    parentsOf: async (itemId) => parentsOf(itemId),

    handingOn: async (runId) => sql(handedOn).all({ runId }) as HandedOn[],

    release: async (runId, stale) =>
      atomic(() => releaseAll(connection, releasableOfRun, { runId, stale: JSON.stringify(stale) })),

    wait: async (itemId) => atomic(() => wait(connection, itemId)),

    unpublished: async (itemId, reason) =>
      atomic(() => {
        wait(connection, itemId);
        sql("UPDATE items SET unpublished = 1, note = ? WHERE id = ?").run(
          `cannot be published: ${reason}`,
          itemId,
        );
      }),

    mayUnblock: async (runId) => sql(unblockable).get({ runId }) !== undefined,

    async publishAgain(runId) {
      const rows = sql(unpublishedOfRun).all({ runId }) as { id: number; parents: number }[];
      if (rows.length === 0) return;
      await atomic(() => {
        for (const { id, parents } of rows) {
          sql("UPDATE items SET unpublished = 0, note = NULL WHERE id = ?").run(id);
          if (parents === 0) applyTransition(connection, id, "released");
        }
      });
    },

    publishedAt: async (target, sha256) =>
      (sql("SELECT url, until FROM published WHERE target = ? AND sha256 = ?").get(target, sha256) as
        | { url: string; until: number | null }
        | undefined) ?? null,

    keepPublished: async (target, sha256, { url, until }) =>
      atomic(() => {
        sql(
          `INSERT INTO published (target, sha256, url, until) VALUES (?, ?, ?, ?)
           ON CONFLICT DO UPDATE SET url = excluded.url, until = excluded.until`,
        ).run(target, sha256, url, until);
      }),

    renewed: async (itemId, { urls }) =>
      atomic(() => {
        sql("UPDATE items SET addressed_at = ? WHERE id = ?").run(clock.now(), itemId);
        for (const [index, url] of urls.entries())
          sql("UPDATE outputs SET url = ? WHERE item_id = ? AND number = ?").run(url, itemId, index + 1);
        releaseChildren(connection, itemId);
      }),

    noteChildren: async (itemId, note) =>
      atomic(() => {
        sql(`UPDATE items SET note = @note WHERE state = 'blocked' AND id IN (${children})`).run({
          id: itemId,
          note,
        });
      }),

    blocked: async (runId) =>
      (sql(blockedOfRun).all({ runId }) as (BlockedItem & { id: number })[]).map(({ id, ...item }) => ({
        ...item,
        parents: parentsOf(id),
      })),
  };
}

/** A planned item is blocked. Call it inside a transaction. */
export function wait(connection: InTransaction, itemId: number): void {
  applyTransition(connection, itemId, "waits");
  const first = releasedFirst;
  connection
    .sql("UPDATE items SET priority = priority - @first WHERE id = @itemId AND priority >= @first / 2")
    .run({ itemId, first });
}

/**
 * Releases the blocked children of an item whose URLs have just arrived, or which was archived or approved. Call it inside a
 * transaction. Returns how many those are.
 */
export function releaseChildren(connection: InTransaction, itemId: number): number {
  return releaseAll(connection, releasableChildren, { id: itemId });
}

function releaseAll(connection: InTransaction, query: string, values: object): number {
  const { sql } = connection;
  const found = sql(query).all(values) as { id: number }[];
  for (const { id } of found) {
    applyTransition(connection, id, "released");
    sql(
      "UPDATE items SET next_at = 0, note = NULL, priority = priority + CASE WHEN priority < @first / 2 THEN @first ELSE 0 END WHERE id = @id",
    ).run({ id, first: releasedFirst });
  }
  return found.length;
}
