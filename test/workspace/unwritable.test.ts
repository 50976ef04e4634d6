import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite, type Sqlite, statements } from "../../src/sqlite.js";
import { madeWritable, openDatabase } from "../../src/store/open.js";
import { endOnDatabaseError, prepareOutFolder } from "../../src/workspace/open.js";

test.each([
  ["EACCES", "make it writable"],
  ["EROFS", "make it writable"],
  ["ENOSPC", "free some space for it"],
  ["EDQUOT", "free some space for it"],
])("what to do about a folder that cannot be written depends on why: %s", (code, todo) => {
  expect(madeWritable(code, "it")).toBe(todo);
});

test("a file in the way of the output folder is reported, with what to do", () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-out-"));
  writeFileSync(join(folder, "taken"), "a file");
  expect(() => prepareOutFolder(join(folder, "taken", "outputs"))).toThrow(
    /\(ENOTDIR\)\. Nothing was sent\. To continue, see that no file lies in the way of it, or name another with --out/,
  );
});

describe("P17: a run whose database can be used no more ends in good order, and says why and what to do", () => {
  test.each<[why: string, spoil: (path: string) => Sqlite, told: RegExp]>([
    [
      "on a disk that is read-only",
      (path) => openSqlite(path, { readonly: true }),
      /readonly database\)\. All answers received so far are saved\. To continue: make it and its folder writable; then/,
    ],
    ["on a disk that is full", full, /is full\).*: free some space on its disk; then `bulkgen resume 3`/],
    [
      "damaged",
      damaged,
      /not a database\).*: it contains what all workspaces share: .*; then `bulkgen resume 3`/,
    ],
  ])("%s", (_, spoil, told) => {
    const path = join(mkdtempSync(join(tmpdir(), "bulkgen-refused-")), "accounts.db");
    openDatabase(path, [(db) => db.exec("CREATE TABLE opened (count INTEGER)")]).close();
    const db = spoil(path);
    const error = thrown(() => statements(db)("INSERT INTO opened VALUES (zeroblob(100000))").run());
    db.close();
    const ending = endOnDatabaseError(error, { id: 3, options: { sandbox: false } });
    expect(ending).toMatchObject({ exit: "unfinished", message: expect.stringMatching(told) });
    expect(ending?.message).toContain(`the run stopped (${path}: `);
    const rehearsal = endOnDatabaseError(error, { id: 3, options: { sandbox: true } });
    expect(rehearsal?.message).toMatch(/; then `bulkgen resume 3 --sandbox`\.$/);
  });

  test("any other error stays what it is", () => {
    expect(endOnDatabaseError(new Error("a defect"), { id: 3, options: { sandbox: false } })).toBeNull();
  });
});

function full(path: string): Sqlite {
  const db = openSqlite(path);
  db.pragma("max_page_count = 2");
  return db;
}

function damaged(path: string): Sqlite {
  writeFileSync(path, "no database ".repeat(200));
  return openSqlite(path);
}

function thrown(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("expected an error");
}
