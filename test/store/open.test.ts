import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { openSqlite, type Sqlite } from "../../src/sqlite.js";
import { type Migration, NewerDatabase, openDatabase } from "../../src/store/open.js";

let file: string;
const first: Migration = (db) => {
  db.exec("CREATE TABLE opened (count INTEGER NOT NULL); INSERT INTO opened VALUES (0); CREATE TABLE t (x)");
};
const second: Migration = (db) => {
  db.exec("ALTER TABLE t ADD COLUMN y");
};

beforeEach(() => {
  file = join(mkdtempSync(join(tmpdir(), "bulkgen-open-")), "deep", "state.db");
});

test("P4: every open sets WAL and synchronous=FULL", () => {
  for (let time = 0; time < 2; time++) {
    const db = openDatabase(file, [first]);
    expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
    expect(db.pragma("synchronous", { simple: true })).toBe(2);
    db.close();
  }
});

test("P4: a database that does not take synchronous=FULL is found out after the first write, and refused", () => {
  const sample = openSqlite(":memory:");
  const prototype = Object.getPrototypeOf(sample) as Pick<Sqlite, "pragma">;
  sample.close();
  const { pragma } = prototype;
  // As a build would that had the setting compiled out.
  prototype.pragma = function (this: Sqlite, text, options) {
    return text === "synchronous = FULL" ? [] : pragma.call(this, text, options);
  };
  try {
    expect(() => openDatabase(file, [first])).toThrow(/state\.db: expected synchronous=2 \(FULL\), got 1/);
  } finally {
    prototype.pragma = pragma;
  }
});

test("P19: a migration copies the database first and then changes all or nothing", () => {
  openDatabase(file, [first]).close();
  const broken: Migration = (db) => {
    db.exec("CREATE TABLE half (x)");
    throw new Error("broken step");
  };
  expect(() => openDatabase(file, [first, second, broken])).toThrow("broken step");
  const db = openSqlite(file);
  expect(db.pragma("user_version", { simple: true })).toBe(1);
  expect(db.prepare("SELECT name FROM pragma_table_info('t')").all()).toEqual([{ name: "x" }]);
  db.close();
  expect(readdirSync(dirname(file))).toEqual(["state.db"]);
  openDatabase(file, [first, second]).close();
  const copy = openSqlite(`${file}.schema-1.backup`);
  expect(copy.pragma("user_version", { simple: true })).toBe(1);
  copy.close();
  expect(readdirSync(dirname(file)).filter((name) => name.endsWith(".part"))).toEqual([]);
});

test("P19: a database that was put back is copied again, whatever lies beside it, and no backup is written over", () => {
  const write = (x: number) => {
    const db = openDatabase(file, [first]);
    db.prepare("INSERT INTO t VALUES (?)").run(x);
    db.close();
  };
  const copied = (name: string) => {
    const copy = openSqlite(`${file}.schema-1.${name}`);
    const rows = copy.prepare("SELECT x FROM t").all();
    copy.close();
    return rows;
  };
  write(1);
  writeFileSync(`${file}.schema-1.backup`, "no backup");
  openDatabase(file, [first, second]).close();
  renameSync(`${file}.schema-1.2.backup`, file);
  write(2);
  writeFileSync(`${file}.schema-1.2.backup`, "no backup");
  openDatabase(file, [first, second]).close();
  expect(copied("3.backup")).toEqual([{ x: 1 }, { x: 2 }]);
  for (const name of ["backup", "2.backup"]) {
    expect(readFileSync(`${file}.schema-1.${name}`, "utf8")).toBe("no backup");
  }
});

test("P19: a database of a newer program is refused and left as it is", () => {
  openDatabase(file, [first, second]).close();
  expect(() => openDatabase(file, [first])).toThrow(NewerDatabase);
  expect(() => openDatabase(file, [first])).toThrow("expected schema 1 or older, got 2");
  expect(existsSync(`${file}.schema-2.backup`)).toBe(false);
});
