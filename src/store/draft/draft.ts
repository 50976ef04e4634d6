import type { DraftItem, DraftRow, ItemKind, StepSum } from "../../core/ports/draft.js";
import { openSqlite, type Sql, type Sqlite, statements } from "../../sqlite.js";
import { draftHistory } from "./history.js";
import { draftInsert, draftProblems, type Problems } from "./insert.js";
import { draftLinks } from "./links.js";
import { draftChoice, draftReading } from "./read.js";
import { draftSteps, longestChain } from "./steps.js";
import { type DraftProgress, draftTables, Tally, tableNames } from "./tables.js";

/**
 * A plan that is being made, in a temporary database: SQLite keeps it in memory while it is small, and in an unnamed
 * file in the system's temporary folder when it is large.
 *
 * Arrays would be less code. Measured with 100,000 rows in chains of ten (test/bench/graph.mjs, a new job, the same keys): this way
 * 178 MB and 5.4 s of processor time; with the records as objects in arrays 740 to 850 MB and 6.3 s; with one compact array for
 * each column, and JSON as text, 564 to 637 MB and 5.8 s. A million rows are planned in less than 300 MB this way.
 */
export function openDraft() {
  const db = openSqlite("");
  // Large pages: those that do not fit in memory are written one by one.
  db.pragma("page_size = 32768");
  // It need not survive a crash.
  for (const pragma of ["journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"])
    db.pragma(pragma);
  db.pragma("cache_size = -24000");
  db.exec(draftTables);
  const sql = statements(db);
  db.exec("BEGIN");
  const progress: DraftProgress = {
    records: 0,
    rows: 0,
    prioritised: false,
    approves: false,
    tally: new Tally(),
  };
  const problems = draftProblems(db);
  return {
    ...draftWriting(db, sql, progress, problems),
    ...draftGroups(db, sql, progress, problems),
    ...draftLinks(db, sql, progress),
    ...draftHistory(db, sql, progress),
    ...draftChoice(db, sql, progress),
    ...draftReading(db, sql, progress),
    /**
     * How long the longest chain of wanted, due items takes, given how long an item of each price group takes; 0 without
     * chains.
     */
    longestChain: (msOf: (group: number) => number): number => longestChain(db, msOf),
    /**
     * The wanted items by step; steps that use no outputs of others come first. Items without a step that are deeper in
     * their chain than `depthMax` are grouped together.
     */
    steps: (depthMax: number): StepSum[] => draftSteps(db, depthMax),
    /** Problems of the wanted rows, in the order of the sheet. */
    problems: problems.all,
    close: (): void => {
      db.close();
    },
  };
}

/**
 * A plan that is being made. A manifest may have more rows than fit into memory, so each row's items are stored here as
 * soon as they are known. Questions about many rows are asked at the end.
 */
export type Draft = ReturnType<typeof openDraft>;

function draftWriting(db: Sqlite, sql: Sql, progress: DraftProgress, problems: Problems) {
  const insert = draftInsert(db, progress);
  const head = sql("SELECT key, number, repeat FROM drafted WHERE position = ?");
  return {
    /** The item at that position is of another kind. */
    remake(position: number, kind: ItemKind): void {
      progress.tally.spoil();
      sql("UPDATE drafted SET kind = ? WHERE position = ?").run(insert.kindOf(kind), position);
    },

    /** Stores a row of the sheet with its items. Returns the position of its first record. */
    add(row: DraftRow, items: readonly DraftItem[]): number {
      const at = progress.records;
      insert.put(row, items[0], true);
      for (let index = 1; index < items.length; index++) insert.put(row, items[index], false);
      progress.rows++;
      return at;
    },

    /** The position that the next record will have. */
    next: (): number => progress.records,

    recordAt: (at: number): { key: string | null; number: number; repeat: number } | null =>
      head.get(at) as { key: string | null; number: number; repeat: number } | null,

    problem: problems.put,

    /** Forgets all rows and problems. */
    clear(): void {
      insert.clear();
      for (const table of tableNames) sql(`DELETE FROM ${table}`).run();
      progress.tally.clear();
      problems.clear();
      Object.assign(progress, { records: 0, rows: 0, prioritised: false, approves: false });
    },
  };
}

function draftGroups(db: Sqlite, sql: Sql, { tally }: DraftProgress, problems: Problems) {
  return {
    /** The first items of the groups of identical items, in the order of the sheet. */
    *groups(): Generator<number, void, void> {
      indexHeads(db);
      const next = sql("SELECT min(head) FROM drafted WHERE head > ? AND key IS NOT NULL");
      for (let head = next.value(-1); head !== null; head = next.value(head)) yield head as number;
    },

    /** How many items of the group are wanted. */
    wantedIn(head: number): number {
      indexHeads(db);
      const wanted = "key IS NOT NULL AND wanted AND (position = @head OR head = @head)";
      return sql(`SELECT count(*) FROM drafted WHERE ${wanted}`).value({ head }) as number;
    },

    rename(
      position: number,
      { key, occurrence, rowId, name }: Pick<DraftItem, "key" | "occurrence" | "rowId" | "name">,
    ): void {
      sql("UPDATE drafted SET key = ?, occurrence = ?, row_id = ?, name = ? WHERE position = ?").run(
        key,
        occurrence,
        rowId,
        name,
        position,
      );
    },

    /** Rows that rely on a default that no model accepts after all: each of them has a problem. */
    refuseWithout(defaults: readonly string[]): void {
      if (defaults.length === 0) return;
      db.exec("CREATE INDEX IF NOT EXISTS drafted_row ON drafted (row)");
      const without = "position > ? AND without IS NOT NULL AND first ORDER BY position LIMIT 1000";
      const page = (after: number) =>
        sql(`SELECT position, row, without FROM drafted WHERE ${without}`).all(after) as Without[];
      tally.spoil();
      for (let some = page(-1); some.length > 0; some = page(some.at(-1)?.position ?? 0)) {
        for (const record of some) refuse(sql, problems, record, defaults);
      }
    },
  };
}

function indexHeads(db: Sqlite): void {
  db.exec("CREATE INDEX IF NOT EXISTS drafted_head ON drafted (head) WHERE head IS NOT NULL");
}

interface Without {
  position: number;
  row: number;
  without: string;
}

function refuse(sql: Sql, problems: Problems, { row, without }: Without, defaults: readonly string[]): void {
  const found = (JSON.parse(without) as DraftRow["without"]).filter(({ key }) => defaults.includes(key));
  const [first] = found;
  if (first === undefined) return;
  for (const { problem } of found) problems.put(problem);
  sql("UPDATE drafted SET key = NULL, shares = NULL, problem = coalesce(problem, ?) WHERE row = ?").run(
    first.problem.message,
    row,
  );
}
