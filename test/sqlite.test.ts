import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSqlite, type Sql, type Sqlite, statements } from "../src/sqlite.js";

let path: string;
let db: Sqlite;
let sql: Sql;

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), "bulkgen-sqlite-")), "rows.db");
  db = openSqlite(path);
  db.exec(`CREATE TABLE tasks (id INTEGER PRIMARY KEY, "what ""it"" is" TEXT, bytes BLOB, credits REAL);
    INSERT INTO tasks VALUES (1, 'a picture', x'00ff', 2.5), (2, NULL, NULL, NULL)`);
  sql = statements(db);
});

afterEach(() => {
  db.close();
});

const all = "SELECT * FROM tasks ORDER BY id";

test("rows are objects by column, as the driver makes them", () => {
  expect(sql(all).all()).toEqual(db.prepare(all).all());
  expect(sql(all).get()).toEqual({
    id: 1,
    'what "it" is': "a picture",
    bytes: Buffer.from([0, 255]),
    credits: 2.5,
  });
  const joined = "SELECT a.*, b.id FROM tasks a JOIN tasks b ON b.id = a.id + 1";
  expect(sql(joined).all()).toEqual(db.prepare(joined).all());
});

test("without a row there is nothing, and a value is the first column's", () => {
  const one = sql("SELECT credits, id FROM tasks WHERE id = ?");
  expect([one.get(9), one.value(9), one.all(9)]).toEqual([undefined, undefined, []]);
  expect([one.value(1), one.value(2)]).toEqual([2.5, null]);
});

test("what changes rows says how many, and may answer them", () => {
  expect(sql("UPDATE tasks SET credits = ?").run(1)).toMatchObject({ changes: 2 });
  expect(
    sql("UPDATE tasks SET credits = @credits WHERE id = 2 RETURNING id, credits").get({ credits: 3 }),
  ).toEqual({
    id: 2,
    credits: 3,
  });
});

test("columns that another process adds in the meantime come under their own names", () => {
  const wide = sql("SELECT *, id + 10 AS later FROM tasks WHERE id = 1");
  expect(wide.get()).toMatchObject({ id: 1, later: 11 });
  const other = openSqlite(path);
  other.exec("ALTER TABLE tasks ADD COLUMN model TEXT DEFAULT 'paint'");
  other.close();
  expect(wide.get()).toMatchObject({ id: 1, credits: 2.5, model: "paint", later: 11 });
  expect(wide.all()).toEqual([wide.get()]);
});

test("the same text is prepared once", () => {
  expect(sql(all)).toBe(sql(all));
});
