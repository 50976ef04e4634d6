import type { Addresses, ArchivedFile, Output, SavedFile, TaskFacts } from "../../core/ports/store.js";
import type { InTransaction, Script } from "../script.js";
import { releaseChildren } from "./chains.js";
import { absolutePath } from "./own-paths.js";
import { applyTransition, type Before, beforeColumns, type RootedDatabase, transit } from "./transition.js";

export function taskOutputChanges(connection: InTransaction) {
  const { sql } = connection;
  return {
    *expire(itemId: number, note: string): Script<void> {
      yield* sql("UPDATE items SET expired = 1, next_at = 0, note = ? WHERE id = ? AND state = 'ready'").run(
        note,
        itemId,
      );
    },

    *lost(itemId: number, number: number): Script<void> {
      const state = yield* sql("SELECT state FROM items WHERE id = ?").value(itemId);
      // In any other state the item has no valid file, or more outputs are expected.
      if (state === "archived") yield* applyTransition(connection, itemId, "file_lost");
      yield* sql("UPDATE outputs SET file = NULL, saved_at = NULL WHERE item_id = ? AND number = ?").run(
        itemId,
        number,
      );
      yield* sql("UPDATE items SET next_at = 0, polls = 0 WHERE id = ?").run(itemId);
    },
  };
}

/** What tasks have made: addresses at first, then files. */
export function taskOutputMethods(connection: RootedDatabase) {
  const { atomic, read, ask, sql, clock, root } = connection;
  const changes = taskOutputChanges(connection);

  return {
    /** The task is done: records its facts and output addresses; the item becomes `ready`. */
    complete: async (itemId: number, facts: TaskFacts): Promise<void> =>
      atomic(
        function* () {
          const { hasChildren } = yield* applyTransition(connection, itemId, "completed", {
            ...addressed(connection, facts),
            polls: 0,
            note: null,
          });
          yield* sql(
            `UPDATE attempts SET charged = coalesce(?, charged, price),
             created_at = ?, completed_at = ?, closed = 1
           WHERE item_id = ? AND task_id IS NOT NULL AND closed = 0`,
          ).run(facts.charged, facts.createdAt, facts.completedAt, itemId);
          // Outputs of an earlier task of the item. Its files stay in the archive, under their own lines of the index.
          yield* sql("DELETE FROM outputs WHERE item_id = ?").run(itemId);
          yield* keepUrls(connection, itemId, facts);
          if (hasChildren) yield* releaseChildren(connection, itemId);
        },
        { part: `item ${itemId}` },
      ),

    outputs: (itemId: number): Promise<Output[]> =>
      ask(function* () {
        return (yield* sql(
          "SELECT number, url, file, sha256, bucket FROM outputs WHERE item_id = ? ORDER BY number",
        ).all(itemId)) as Output[];
      }),

    /** The signed addresses of a ready item have expired: its task is due for another poll. */
    expire: async (itemId: number, note: string): Promise<void> => atomic(() => changes.expire(itemId, note)),

    /** New signed URLs for outputs that are not archived yet. */
    refreshOutputs: async (itemId: number, fresh: Addresses): Promise<void> =>
      atomic(function* () {
        const { hasChildren } = yield* applyTransition(
          connection,
          itemId,
          "url_expired",
          addressed(connection, fresh),
        );
        yield* keepUrls(connection, itemId, fresh);
        if (hasChildren) yield* releaseChildren(connection, itemId);
      }),

    /**
     * The outputs that the run still needs are at this origin now, because a sandbox has another port at each start. Only
     * for sandboxes.
     */
    async readdress(runId: number, origin: string): Promise<void> {
      const rows = await read(() => sql(neededOutputs).all({ runId }));
      const found = rows as { id: number; number: number; url: string }[];
      const elsewhere = found.filter(({ url }) => URL.canParse(url) && new URL(url).origin !== origin);
      if (elsewhere.length === 0) return;
      await atomic(function* () {
        for (const { id, number, url } of elsewhere) {
          const { pathname, search } = new URL(url);
          yield* sql("UPDATE outputs SET url = ? WHERE item_id = ? AND number = ?").run(
            `${origin}${pathname}${search}`,
            id,
            number,
          );
        }
      });
    },

    /** One output is in the archive; when all are, the item is `archived`. */
    saved: async (itemId: number, number: number, file: SavedFile): Promise<void> =>
      atomic(
        function* () {
          yield* sql(
            `UPDATE outputs SET file = ?, out_folder = (${folderOfItem}), bucket = ?, bytes = ?, sha256 = ?, mime = ?,
               checked = ?, saved_at = ? WHERE item_id = ? AND number = ?`,
          ).run(
            file.file,
            itemId,
            file.bucket ?? null,
            file.bytes,
            file.sha256,
            file.mime,
            file.check,
            clock.now(),
            itemId,
            number,
          );
          const item = (yield* sql(itemSaved).get(itemId)) as Before & { missing: number };
          if (item.missing === 1) return;
          // Of what a person accepted, the reason stays.
          const note = (yield* sql(acceptedOutput).value(itemId)) as string | null | undefined;
          yield* transit(connection, item, "saved", { note: note ?? null });
          if (item.hasChildren === 1) yield* releaseChildren(connection, itemId);
        },
        { part: `item ${itemId}` },
      ),
    /** One file of an archived item is gone: the item becomes ready to be downloaded again, which costs nothing. */
    lost: async (itemId: number, number: number): Promise<void> => atomic(() => changes.lost(itemId, number)),

    /** The files of archived items were removed for good. The items stay archived, with this check of each output. */
    pruned: async (
      itemIds: readonly number[],
      { check, note }: { check: string; note: string },
    ): Promise<void> =>
      atomic(function* () {
        const ids = JSON.stringify(itemIds);
        yield* sql(
          `UPDATE outputs SET file = NULL, checked = @check
           WHERE item_id IN (SELECT CAST(value AS INTEGER) FROM json_each(@ids)) AND file IS NOT NULL`,
        ).run({ ids, check });
        yield* sql(
          "UPDATE items SET note = @note WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(@ids))",
        ).run({ ids, note });
      }),

    /** The files of a job's archived items, or only the files of items without a row. */
    files: (jobName: string, only?: "vanished"): Promise<ArchivedFile[]> =>
      read(function* () {
        const rows = yield* sql(only === "vanished" ? filesOfVanished : filesOfJob).all(jobName);
        return (rows as ArchivedFile[]).map((file) => ({
          ...file,
          outFolder: absolutePath(root, file.outFolder),
        }));
      }),

    /** A file of the archive has another name. */
    moved: async (itemId: number, number: number, file: string): Promise<void> =>
      atomic(function* () {
        yield* sql("UPDATE outputs SET file = ? WHERE item_id = ? AND number = ?").run(file, itemId, number);
      }),

    /** What was archived since a run started: the number of items, of their files, and of bytes. */
    filesOf: (runId: number): Promise<{ made: number; files: number; bytes: number }> =>
      read(function* () {
        return (yield* sql(
          `SELECT count(DISTINCT CASE WHEN i.state = 'archived' THEN i.id END) AS made,
             count(*) AS files, coalesce(sum(o.bytes), 0) AS bytes
           FROM runs r JOIN items i ON i.run_id = r.id JOIN outputs o ON o.item_id = i.id
           WHERE r.id = ? AND o.file IS NOT NULL
             -- What this run has fetched again was paid for earlier. The clock may have been set back since the run began.
             AND (o.saved_at >= r.started_at OR i.id IN (SELECT item_id FROM attempts WHERE run_id = r.id))`,
        ).get(runId)) as { made: number; files: number; bytes: number };
      }),
  };
}

const folderOfItem =
  "SELECT runs.out_folder FROM items JOIN runs ON runs.id = items.run_id WHERE items.id = ?";

const filesWhere = (condition: string) => `
  SELECT i.id AS itemId, i.key, o.number, o.file, o.out_folder AS outFolder, o.bucket, o.bytes, o.sha256, o.mime, o.checked AS "check",
    coalesce((SELECT task_id FROM attempts a WHERE a.item_id = i.id AND task_id IS NOT NULL AND o.url <> ''
      ORDER BY a.number DESC LIMIT 1), '') AS taskId
  FROM items i JOIN outputs o ON o.item_id = i.id
  WHERE i.job_id = (SELECT id FROM jobs WHERE name = ?) AND i.state = 'archived' AND o.file IS NOT NULL ${condition}
  ORDER BY i.position, i.id, o.number`;
const filesOfJob = filesWhere("");
const filesOfVanished = filesWhere("AND i.vanished = 1");

/** The outputs that a run has yet to fetch or to hand on. */
const neededOutputs = `
  SELECT outputs.item_id AS id, outputs.number, outputs.url FROM outputs WHERE outputs.item_id IN (
    SELECT id FROM items WHERE run_id = @runId AND state = 'ready'
    UNION SELECT parent.id FROM items JOIN parents ON parents.item_id = items.id
      JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
      WHERE items.run_id = @runId AND (items.state = 'blocked' OR items.state = 'planned'))`;

/** What the item keeps of the URLs of its outputs. */
function addressed({ clock }: Pick<InTransaction, "clock">, { fetchBy }: Addresses) {
  return { next_at: 0, fetch_by: fetchBy, addressed_at: clock.now(), expired: 0 };
}

function* keepUrls({ sql }: InTransaction, itemId: number, { urls }: Addresses): Script<void> {
  for (const [index, url] of urls.entries()) {
    yield* sql(
      `INSERT INTO outputs (item_id, number, url) VALUES (?, ?, ?)
       ON CONFLICT (item_id, number) DO UPDATE SET url = excluded.url`,
    ).run(itemId, index + 1, url);
  }
}

const acceptedOutput =
  "SELECT checked FROM outputs WHERE item_id = ? AND checked LIKE 'accepted%' ORDER BY number LIMIT 1";
const itemSaved = `
  SELECT ${beforeColumns}, EXISTS (SELECT 1 FROM outputs WHERE item_id = items.id AND file IS NULL) AS missing
  FROM items WHERE id = ?`;
