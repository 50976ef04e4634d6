import type { ChangedRow, Comparison, Known, KnownContent, RowContent } from "../../core/ports/draft.js";
import type { Sql, Sqlite } from "../../sqlite.js";
import { listing } from "./read.js";
import type { DraftProgress } from "./tables.js";

/** What differs between two items. */
export type Differing = (old: RowContent, now: RowContent) => ChangedRow["fields"];

/** What a plan reads from the job's history: the states of items, and what has changed. */
export function draftHistory(db: Sqlite, sql: Sql, { tally }: DraftProgress) {
  return {
    /** The job's existing items, marking those whose files are missing. */
    know(items: Iterable<Known>, missing: ReadonlySet<string>): void {
      const insert = sql(
        "INSERT OR REPLACE INTO known (key, row_id, name, state, attempted, vanished, missing, document, cells) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      );
      for (const { key, rowId, name, state, attempted, vanished, cells, ...content } of items) {
        const { model, prompt, params, inputs, files } = content;
        const flags = [attempted, vanished, missing.has(key)].map(Number);
        const document = JSON.stringify({ model, prompt, params, inputs, files });
        insert.run(key, rowId, name, state, ...flags, document, cells && JSON.stringify(cells));
      }
    },

    /** The row id that an item of this key had before, its state, and its cells if `know` got them; null if the job has none. */
    knownOf(key: string): Pick<Known, "rowId" | "state" | "cells"> | null {
      const found = sql("SELECT row_id AS rowId, state, cells FROM known WHERE key = ?").get(key) as
        | (Pick<Known, "rowId" | "state"> & { cells: string | null })
        | undefined;
      return found === undefined ? null : { ...found, cells: found.cells && JSON.parse(found.cells) };
    },

    /** The job's items of this row id: first the one that the row asked for when the job was last planned. */
    knownOfRow(rowId: string): (KnownContent & Pick<Known, "state">)[] {
      db.exec(indexOfRows);
      const found = sql("SELECT document, state FROM known WHERE row_id = ? ORDER BY vanished, id DESC").all(
        rowId,
      ) as ({ document: string } & Pick<Known, "state">)[];
      return found.map(({ document, state }) => ({ ...(JSON.parse(document) as KnownContent), state }));
    },

    /** Where each item stands, and which are to be submitted. */
    stand(again: { failed: boolean; missing: boolean }): void {
      tally.spoil();
      // A dropped item comes back with its row, unless it was submitted: then a person skipped it.
      sql(
        `UPDATE drafted SET state = known.state, due =
           known.state IN ('planned', 'blocked')
           OR (known.state = 'dropped' AND NOT known.attempted)
           OR (known.state = 'failed' AND ?)
           OR (known.missing AND ?)
         FROM known WHERE known.key = drafted.key`,
      ).run(Number(again.failed), Number(again.missing));
    },

    /** Finds what changed since the job was last planned; `fields` returns what differs between two items. */
    compare(fields: Differing): void {
      db.exec("CREATE INDEX IF NOT EXISTS drafted_key ON drafted (key) WHERE key IS NOT NULL");
      db.exec(indexOfRows);
      sql(wrongIds).run();
      sql(
        `UPDATE known SET gone = 1 WHERE NOT EXISTS (SELECT 1 FROM drafted WHERE key = known.key)
           AND row_id NOT IN (SELECT id FROM wrong_ids)`,
      ).run();
      findChanges(sql, fields);
      db.exec("CREATE INDEX IF NOT EXISTS changes_old ON changes (old_key)");
    },

    comparison: (): Comparison => comparison(db),

    /** Rows of these models whose prompt is all that differs from before. */
    changedPrompts: (models: readonly string[]): { model: string; number: number }[] =>
      sql(changedPrompts).all(JSON.stringify(models)) as { model: string; number: number }[],
  };
}

const indexOfRows = "CREATE INDEX IF NOT EXISTS known_row ON known (row_id)";

/** The ids that the items of wrong rows would have, with all copies, including rows that could not be read. */
const wrongIds = `
  WITH RECURSIVE copies (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM copies WHERE n < 1000)
  INSERT OR IGNORE INTO wrong_ids
  SELECT row_id FROM problems WHERE row_id IS NOT NULL
  UNION ALL
  SELECT id || '-' || n FROM drafted JOIN copies ON n <= repeat
  WHERE first AND repeat > 1 AND id IN (SELECT row_id FROM problems)
`;

/** If several items have the same row id, the newest belonged to the row until now. */
function findChanges(sql: Sql, fields: Differing): void {
  const page = sql(
    `SELECT d.position, d.key, d.model, d.prompt, d.params, d.inputs, k.key AS oldKey, k.document
     FROM planned d JOIN known k ON k.id = (SELECT max(id) FROM known WHERE row_id = d.row_id AND gone)
     WHERE d.position > ? AND NOT EXISTS (SELECT 1 FROM known WHERE key = d.key)
     ORDER BY d.position LIMIT 500`,
  );
  let after = -1;
  for (;;) {
    const pairs = page.all(after) as Pair[];
    for (const { position, key, oldKey, document, ...now } of pairs) {
      after = position;
      const content = {
        ...now,
        params: JSON.parse(now.params),
        inputs: JSON.parse(now.inputs),
      } as RowContent;
      const different = fields(JSON.parse(document) as RowContent, content);
      if (different.length === 0) continue;
      sql("INSERT INTO changes (position, key, old_key, fields) VALUES (?, ?, ?, ?)").run(
        position,
        key,
        oldKey,
        JSON.stringify(different),
      );
    }
    if (pairs.length === 0) return;
  }
}

interface Pair {
  position: number;
  key: string;
  model: string;
  prompt: string | null;
  params: string;
  inputs: string;
  oldKey: string;
  document: string;
}

/** An item that is made of a new one is new itself. */
const changedPrompts = `
  SELECT d.model, d.number FROM changes c JOIN planned d ON d.position = c.position
  WHERE d.wanted AND d.due AND d.model IN (SELECT value FROM json_each(?))
    AND json_array_length(c.fields) = 1 AND json_extract(c.fields, '$[0].field') = 'prompt'
    AND NOT EXISTS (SELECT 1 FROM json_each(coalesce(d.parents, '[]')) parent
      WHERE json_extract(parent.value, '$.key') NOT IN (SELECT key FROM known))
  ORDER BY c.position`;

function comparison(db: Sqlite): Comparison {
  const archived = "planned d JOIN known k ON k.key = d.key WHERE d.wanted AND k.state = 'archived'";
  return {
    changed: listing(
      db,
      `SELECT d.number AS rowNumber, d.row_id AS rowId, c.key, c.old_key AS oldKey, c.fields
       FROM changes c JOIN planned d ON d.position = c.position WHERE d.wanted ORDER BY c.position`,
      (row) => ({ ...row, fields: JSON.parse(row["fields"] as string) }) as never,
    ),
    vanished: listing(
      db,
      `SELECT key, row_id AS rowId, state,
         (SELECT key FROM changes WHERE old_key = known.key ORDER BY id DESC LIMIT 1) AS replacedBy,
         row_id IN (SELECT row_id FROM planned) AS hasRow
       FROM known WHERE gone AND NOT vanished AND state <> 'dropped' ORDER BY id`,
      (row) => ({ ...row, hasRow: row["hasRow"] === 1 }) as never,
    ),
    renamed: listing(
      db,
      `SELECT d.number AS rowNumber, d.row_id AS rowId, k.name AS "from", d.name AS "to"
       FROM ${archived} AND k.name <> d.name ORDER BY d.position`,
    ),
    restored: listing(
      db,
      `SELECT d.number AS rowNumber, d.row_id AS rowId, d.key FROM ${archived} AND k.vanished ORDER BY d.position`,
    ),
  };
}
