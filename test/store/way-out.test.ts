import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { openSqlite, type Sqlite } from "../../src/sqlite.js";
import { openDatabase, wayOut } from "../../src/store/open.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-way-out-"));
});

/** What was thrown. */
function thrown(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("expected an error");
}

/** A database of one table, and what writing into it throws once it was opened so. */
function refusal(open: (path: string) => Sqlite): unknown {
  const path = join(folder, "state.db");
  openDatabase(path, [(db) => db.exec("CREATE TABLE opened (count INTEGER)")]).close();
  const db = open(path);
  try {
    return thrown(() => db.prepare("INSERT INTO opened VALUES (zeroblob(100000))").run());
  } finally {
    db.close();
  }
}

test("a database that is whole is not to be replaced: its disk is to be freed, or made writable", () => {
  const full = refusal((path) => {
    const db = openSqlite(path);
    db.pragma("max_page_count = 2");
    return db;
  });
  expect(wayOut(full)).toBe("free some space on its disk");
  const readOnly = refusal((path) => openSqlite(path, { readonly: true }));
  expect(wayOut(readOnly)).toBe("make it and its folder writable");
  mkdirSync(join(folder, "accounts.db"));
  expect(wayOut(thrown(() => openDatabase(join(folder, "accounts.db"), [])))).toBe(
    "make it and its folder writable",
  );
});

test("a database of a newer program asks for a newer program", () => {
  const path = join(folder, "state.db");
  openDatabase(path, [(db) => db.exec("CREATE TABLE opened (count INTEGER)")]).close();
  expect(wayOut(thrown(() => openDatabase(path, [])))).toBe("update bulkgen");
});

test.each([
  ["state.db", /backup.*doctor --rebuild/],
  ["accounts.db", /quota ledger and the spend log.*move it away.*credits spent today/],
  ["schedules.db", /schedules and the record of their runs.*move it away.*schedule add/],
])("what to do where %s is damaged depends on what it holds", (name, expected) => {
  const path = join(folder, name);
  writeFileSync(path, "no database ".repeat(200));
  expect(wayOut(thrown(() => openDatabase(path, [])))).toMatch(expected);
});

test("what to do where a rehearsal's state is damaged leaves the workspace's own alone", () => {
  const path = join(folder, "sandbox", "state.db");
  mkdirSync(join(folder, "sandbox"));
  writeFileSync(path, "no database ".repeat(200));
  expect(wayOut(thrown(() => openDatabase(path, [])))).toMatch(/`bulkgen doctor --sandbox --rebuild`/);
});

test("what is no refusal has no way out", () => {
  expect(wayOut(new Error("state.db: no such table"))).toBeNull();
});

test("a file that the system keeps from its user is to be made theirs", () => {
  const refused = Object.assign(new Error("EACCES: permission denied, open '/w/workspace.json'"), {
    code: "EACCES",
    path: "/w/workspace.json",
  });
  expect(wayOut(refused)).toBe("let this user read and write /w/workspace.json");
  expect(wayOut(Object.assign(new Error("ENOENT"), { code: "ENOENT", path: "/w" }))).toBeNull();
});
