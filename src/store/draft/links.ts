import type { DraftItem, DraftLink, DraftSlot, ItemKind, ResolvedLink } from "../../core/ports/draft.js";
import type { Parent } from "../../core/ports/store.js";
import type { Sql, Sqlite } from "../../sqlite.js";
import { type DraftProgress, type ItemRecord, itemOf } from "./tables.js";

/** The links of a draft: inputs that are the outputs of other items. Sheets without any pay nothing for them. */
export function draftLinks(db: Sqlite, sql: Sql, { tally }: DraftProgress) {
  const insert = db.prepare(
    "INSERT INTO links (child, field, written, output, place, name, other, parent, copy) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const kindOf = kindsOf(sql);
  // Nearly all items keep their ids and names, whose index would have to be written too.
  const finishUsual = db.prepare(
    "UPDATE drafted SET key = ?, contents = ?, parents = ?, depth = ? WHERE position = ?",
  );
  return {
    /** Stores that an input of an item is the output of another item. Only for stored positions. */
    link({ child, field, written, output, place, of }: DraftLink): void {
      const named =
        "position" in of ? [null, null, of.position, of.copy] : [of.names[0], of.names[1] ?? null, null, 1];
      insert.run(child, field, written, output, JSON.stringify(place), ...named);
    },

    /** Finds the items that links name. Returns how many links there are. */
    resolveLinks(): number {
      const count = sql("SELECT count(*) FROM links").value() as number;
      if (count === 0) return 0;
      db.exec("CREATE INDEX IF NOT EXISTS drafted_name ON drafted (coalesce(row_id, id))");
      db.exec("CREATE INDEX IF NOT EXISTS drafted_head ON drafted (head) WHERE head IS NOT NULL");
      sql(
        `UPDATE links SET parent = coalesce(${named("name")}, ${named("other")}) WHERE parent IS NULL`,
      ).run();
      // The copies of a row follow each other; a row that shares the items of another row has no copies.
      sql(
        "UPDATE links SET parent = parent + copy - 1 WHERE copy > 1 AND NOT EXISTS (SELECT 1 FROM drafted WHERE position = parent AND shares IS NOT NULL)",
      ).run();
      sql(
        `UPDATE links SET parent = (
           SELECT shared.position FROM drafted shared WHERE shared.key IS NOT NULL AND shared.occurrence = links.copy
             AND (shared.position = sharing.shared OR shared.head = sharing.shared))
         FROM drafted sharing WHERE sharing.position = links.parent AND sharing.shares IS NOT NULL`,
      ).run();
      db.exec("CREATE INDEX IF NOT EXISTS links_parent ON links (parent)");
      return count;
    },

    /** The items with links, in the order of the sheet; `open` is how many of their parents have links themselves. */
    *linked(): Generator<{ child: number; open: number }, void, void> {
      const linked = db.prepare(
        `SELECT child, sum(EXISTS (SELECT 1 FROM links above WHERE above.child = links.parent)) AS open
         FROM links GROUP BY child ORDER BY child`,
      );
      for (const item of linked.iterate()) yield item as { child: number; open: number };
    },

    childrenOf: (parent: number): number[] =>
      (sql("SELECT child FROM links WHERE parent = ? ORDER BY child").all(parent) as { child: number }[]).map(
        ({ child }) => child,
      ),

    linksOf: (child: number): ResolvedLink[] => sql(resolved).all(child) as ResolvedLink[],

    /** Null if nothing is made of the row. */
    slotAt(position: number): (DraftSlot & { number: number; repeat: number }) | null {
      const record = sql(`${slots} AND position = ?`).get(position) as SlotRecord | undefined;
      if (record === undefined) return null;
      const { id, number, repeat, cells } = record;
      return { position, id, cells, item: itemOf(record, kindOf(record.kind)), number, repeat };
    },

    /** The group of that first item. */
    group: (head: number): DraftSlot[] =>
      (
        sql(`${slots} AND (position = @head OR head = @head) ORDER BY position`).all({ head }) as SlotRecord[]
      ).map((record) => {
        const { position, id, kind, cells } = record;
        return { position, id, cells, item: itemOf(record, kindOf(kind)) };
      }),

    /** An item with links is known once the keys of its parents are. */
    finish(
      position: number,
      {
        key,
        occurrence,
        head,
        rowId,
        name,
        contents,
        parents,
        depth,
      }: Pick<DraftItem, "key" | "occurrence" | "head" | "rowId" | "name" | "contents"> & {
        parents: readonly Parent[];
        depth: number;
      },
      isUsual: boolean,
    ): void {
      const texts = [JSON.stringify(contents), JSON.stringify(parents)];
      if (isUsual) {
        finishUsual.run(key, ...texts, depth, position);
        return;
      }
      sql(
        "UPDATE drafted SET key = ?, occurrence = ?, head = ?, row_id = ?, name = ?, contents = ?, parents = ?, depth = ? WHERE position = ?",
      ).run(key, occurrence, head, rowId, name, ...texts, depth, position);
    },

    /** The row at that position uses the item of another row instead of its own. */
    share(position: number, head: number): void {
      tally.spoil();
      sql("UPDATE drafted SET key = NULL, shared = ?, shares = 1 WHERE position = ?").run(head, position);
    },

    /** Nothing is made of the row at that position. */
    refuseRow(position: number, problem: string): void {
      db.exec("CREATE INDEX IF NOT EXISTS drafted_row ON drafted (row)");
      tally.spoil();
      sql(
        `UPDATE drafted SET key = NULL, shares = NULL, problem = coalesce(problem, ?)
         WHERE row = (SELECT row FROM drafted WHERE position = ?)`,
      ).run(problem, position);
    },

    /** The ids that rows state themselves, in the order of the sheet. */
    *rowIds(): Generator<string, void, void> {
      const ids = db.prepare(
        "SELECT coalesce(row_id, id) FROM drafted WHERE id IS NOT NULL ORDER BY position",
      );
      for (const id of ids.pluck().iterate()) yield id as string;
    },

    /** Also selects the items whose outputs the selected items use. Returns how many items that adds. */
    wantParents: (): number =>
      sql(
        `UPDATE drafted SET wanted = 1 WHERE NOT wanted AND position IN (
           WITH RECURSIVE above (position) AS (
             SELECT parent FROM links JOIN drafted ON position = child WHERE wanted AND key IS NOT NULL
             UNION SELECT parent FROM links JOIN above ON child = above.position)
           SELECT position FROM above)`,
      ).run().changes,
  };
}

const slots = `
  SELECT position, id, number, repeat, key, copy, occurrence, head, approve, priority, kind, prompt, inputs, contents, cells,
    coalesce(row_id, id) AS row_id, coalesce(name, row_id, id) AS name
  FROM drafted WHERE key IS NOT NULL`;

interface SlotRecord extends ItemRecord {
  position: number;
  id: string | null;
  cells: string | null;
  number: number;
  repeat: number;
  kind: number;
}

const keptMax = 2_000;

/** Kinds by their number. Items of one kind share its object, which is read once. */
function kindsOf(sql: Sql): (number: number) => ItemKind {
  const kept = new Map<number, ItemKind>();
  return (number) => {
    const known = kept.get(number);
    if (known !== undefined) return known;
    const record = sql(
      'SELECT model, category, params, price, price_group AS "group" FROM kinds WHERE id = ?',
    ).get(number) as Omit<ItemKind, "params"> & { params: string };
    const kind = { ...record, params: JSON.parse(record.params) };
    if (kept.size < keptMax) kept.set(number, kind);
    return kind;
  };
}

/** The plus takes away the name's affinity, with which SQLite would not use the index. */
const named = (column: string) =>
  `(SELECT position FROM drafted WHERE coalesce(row_id, id) = +links.${column} ORDER BY key IS NULL AND shares IS NULL, position LIMIT 1)`;

const resolved = `
  SELECT field, written, output, place, parent, drafted.key, kinds.model, kinds.category,
    coalesce(drafted.row_id, drafted.id) AS rowId
  FROM links LEFT JOIN drafted ON drafted.position = links.parent LEFT JOIN kinds ON kinds.id = drafted.kind
  WHERE child = ? ORDER BY field`;
