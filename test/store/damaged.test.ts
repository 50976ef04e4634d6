import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { openSqlite, statements } from "../../src/sqlite.js";
import { openAccounts } from "../../src/store/accounts/accounts.js";
import { takeLock } from "../../src/store/lock.js";
import { openDatabase, transactions, wayOut } from "../../src/store/open.js";
import { openSchedules } from "../../src/store/schedules.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { openSteps } from "../../src/workspace/state.js";
import { ManualClock } from "../manual-clock.js";
import { newItem, runStart } from "./item-fixture.js";
import { spoil } from "./spoil.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-damaged-"));
});

const clock = new ManualClock();

const savedFile = {
  kind: "saved" as const,
  file: "a.png",
  bytes: 1,
  sha256: "00",
  mime: "image/png",
  check: "decoded",
};

describe("damage that shows only when it is met", () => {
  test("of a workspace is reported with the file and what to do", async () => {
    const file = join(folder, "state.db");
    await openWorkspace({ stateFile: file, root: folder }, clock).close();
    spoil(file, "jobs");
    const store = openWorkspace({ stateFile: file, root: folder }, clock);
    const error = await store.job("demo").catch((thrown: unknown) => thrown);
    await store.close();
    expect((error as Error).message).toBe(`${file}: database disk image is malformed`);
    expect(wayOut(error)).toMatch(/`bulkgen doctor --rebuild`/);
  });

  test("of the shared accounts is reported with the file, also from a transaction, and once", async () => {
    const file = join(folder, "accounts.db");
    await openAccounts(file, clock).close();
    spoil(file, "accounts");
    const accounts = openAccounts(file, clock);
    const error = await accounts.accountOf("https://a.example", "f").catch((thrown: unknown) => thrown);
    await accounts.close();
    expect((error as Error).message).toBe(`${file}: database disk image is malformed`);
    expect(wayOut(error)).toMatch(/quota ledger/);
  });

  test("is reported by every command that follows a run", async () => {
    const file = join(folder, "state.db");
    await openWorkspace({ stateFile: file, root: folder }, clock).close();
    spoil(file, "events");
    const steps = await openSteps({ stateFile: file, root: folder, database: null }, clock);
    await expect(steps.newest()).rejects.toThrow(`${file}: database disk image is malformed`);
    await steps.close();
  });
});

describe("a value that is not JSON is reported with the file and what to do", () => {
  const spoilValue = (file: string, update: string) => {
    const db = openSqlite(file);
    expect(db.prepare(update).run().changes).toBe(1);
    db.close();
  };

  test.each([
    ["the columns of a sheet", "UPDATE sheets SET columns = '['"],
    ["the cells of a sheet", "UPDATE sheet_rows SET cells = '{'"],
    ["the params of an archived item", "UPDATE items SET params = '{'"],
  ])("%s", async (_what, update) => {
    const file = join(folder, "state.db");
    const store = openWorkspace({ stateFile: file, root: folder }, clock);
    const run = await store.startRun((await store.job("demo")).id, runStart);
    await store.keepSheet(run.id, {
      columns: ["id"],
      rows: [{ number: 2, cells: { id: "a" }, keys: ["k1:a"], problem: null }],
    });
    await store.supply(run.id, newItem("a"), savedFile);
    spoilValue(file, update);
    const reading = async () => {
      for await (const _ of (await store.sheetOf(run.id))?.pages() ?? []);
      for await (const _ of store.archived());
    };
    const error = await reading().catch((thrown: unknown) => thrown);
    await store.close();
    expect((error as Error).message).toBe(`${file}: a value in it is damaged`);
    expect(wayOut(error)).toMatch(/`bulkgen doctor --rebuild`/);
  });

  test("the flags of a schedule", async () => {
    const file = join(folder, "schedules.db");
    const schedules = openSchedules(file, clock);
    await schedules.add({
      name: "nightly",
      manifest: "set.csv",
      cron: "@daily",
      zone: "UTC",
      flags: [],
      missed: "once",
      seenUntil: 0,
      pausedAt: null,
    });
    spoilValue(file, "UPDATE schedules SET flags = '['");
    await expect(schedules.all()).rejects.toThrow(`${file}: a value in it is damaged`);
    schedules.close();
  });
});

test("what only a transaction meets, at its start or its end, is reported with the file too", () => {
  const file = join(folder, "state.db");
  const db = openDatabase(file, [
    (fresh) =>
      fresh.exec(`CREATE TABLE opened (count INTEGER); CREATE TABLE parts (id INTEGER PRIMARY KEY);
        CREATE TABLE wholes (part INTEGER REFERENCES parts (id) DEFERRABLE INITIALLY DEFERRED)`),
  ]);
  const sql = statements(db);
  expect(() => transactions(db)(() => sql("INSERT INTO wholes VALUES (7)").run())).toThrow(
    `${file}: FOREIGN KEY constraint failed`,
  );
  db.pragma("busy_timeout = 0");
  const other = openSqlite(file);
  other.exec("BEGIN IMMEDIATE");
  expect(() => transactions(db)(() => {})).toThrow(`${file}: database is locked`);
  other.close();
  expect(() => sql("SELECT * FROM nowhere")).toThrow(`${file}: no such table: nowhere`);
  db.close();
});

test("a damaged lock is reported with its file, and that nothing is lost with it", () => {
  const file = join(folder, "run.lock");
  writeFileSync(file, "no database ".repeat(200));
  let error: unknown;
  try {
    takeLock(file);
  } catch (thrown) {
    error = thrown;
  }
  expect((error as Error).message).toBe(`${file}: file is not a database`);
  expect(wayOut(error)).toBe("it holds no data: remove it while no bulkgen runs");
});

test("errors of a database in memory or without a name are reported in SQLite's words", () => {
  for (const name of ["", ":memory:"]) {
    const db = openSqlite(name);
    expect(() => statements(db)("SELECT * FROM nowhere")).toThrow(/^no such table: nowhere$/);
    db.close();
  }
});
