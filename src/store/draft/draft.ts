import type { Draft, DraftRow } from "../../core/ports/draft.js";
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
 * Arrays would be less code. With them, the items alone of 100,000 rows in chains of ten take 146 MB of heap more (the
 * process then has up to 389 MB instead of 167), and those of a million rows 1.3 GB, where a plan is made in less than 300.
 */
export function openDraft(): Draft {
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
    longestChain: (msOf) => longestChain(db, msOf),
    steps: (depthMax) => draftSteps(db, depthMax),
    problems: problems.all,
    close: () => db.close(),
  };
}

function draftWriting(
  db: Sqlite,
  sql: Sql,
  progress: DraftProgress,
  problems: Problems,
): Pick<Draft, "add" | "remake" | "next" | "recordAt" | "problem" | "clear"> {
  const insert = draftInsert(db, progress);
  const head = sql("SELECT key, number, repeat FROM drafted WHERE position = ?");
  return {
    remake(position, kind) {
      progress.tally.spoil();
      sql("UPDATE drafted SET kind = ? WHERE position = ?").run(insert.kindOf(kind), position);
    },

    add(row, items) {
      const at = progress.records;
      insert.put(row, items[0], true);
      for (let index = 1; index < items.length; index++) insert.put(row, items[index], false);
      progress.rows++;
      return at;
    },

    next: () => progress.records,

    recordAt: (at) => head.get(at) as ReturnType<Draft["recordAt"]>,

    problem: problems.put,

    clear() {
      insert.clear();
      for (const table of tableNames) sql(`DELETE FROM ${table}`).run();
      progress.tally.clear();
      problems.clear();
      Object.assign(progress, { records: 0, rows: 0, prioritised: false, approves: false });
    },
  };
}

function draftGroups(
  db: Sqlite,
  sql: Sql,
  { tally }: DraftProgress,
  problems: Problems,
): Pick<Draft, "groups" | "wantedIn" | "rename" | "refuseWithout"> {
  return {
    *groups() {
      indexHeads(db);
      const next = sql("SELECT min(head) FROM drafted WHERE head > ? AND key IS NOT NULL");
      for (let head = next.value(-1); head !== null; head = next.value(head)) yield head as number;
    },

    wantedIn(head) {
      indexHeads(db);
      const wanted = "key IS NOT NULL AND wanted AND (position = @head OR head = @head)";
      return sql(`SELECT count(*) FROM drafted WHERE ${wanted}`).value({ head }) as number;
    },

    rename(position, { key, occurrence, rowId, name }) {
      sql("UPDATE drafted SET key = ?, occurrence = ?, row_id = ?, name = ? WHERE position = ?").run(
        key,
        occurrence,
        rowId,
        name,
        position,
      );
    },

    refuseWithout(defaults) {
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
