import { expect, test } from "vitest";
import { variantKey } from "../../../src/core/identity.js";
import { itemStates } from "../../../src/core/item.js";
import { credits } from "../../../src/core/money.js";
import type { Sqlite } from "../../../src/sqlite.js";
import { browserOn } from "../../../src/store/browse/browser.js";
import { finish, sqliteDatabase, sqliteQueries } from "../../../src/store/on-sqlite.js";
import { openDatabase } from "../../../src/store/open.js";
import { restoreItem } from "../../../src/store/workspace/restore.js";
import { workspaceOn } from "../../../src/store/workspace/workspace.js";
import { workspaceMigrations } from "../../../src/store/workspace/workspace-schema.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../item-fixture.js";

/** Every statement that was prepared on a database. */
function preparedOn(db: Sqlite): Set<string> {
  const texts = new Set<string>();
  const prepare = db.prepare.bind(db);
  db.prepare = ((text: string) => {
    texts.add(text);
    return prepare(text);
  }) as typeof db.prepare;
  return texts;
}

/** Steps of a query's plan that read a whole table, or all rows of a run or a job: what grows with the items. */
function growing(db: Sqlite, text: string): string[] {
  const values = Object.fromEntries([...text.matchAll(/@(\w+)/g)].map(([, name]) => [name, null]));
  const unnamed = [...text.matchAll(/\?/g)].map(() => null);
  const steps = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(values, ...unnamed) as { detail: string }[];
  const isBounded =
    /json_each|SCAN (runs|jobs)|run_groups|run_states|CONSTANT ROW|INDEX (items_open|attempts_unanswered|orders_waiting)/;
  const isWhole = /^SCAN|INDEX (items_run|attempts_run)|\(job_id=\?\)/;
  return steps.map(({ detail }) => detail).filter((step) => isWhole.test(step) && !isBounded.test(step));
}

/** SQLite plans by the schema alone, because nothing analyses the tables: the plans are the same for any number of items. */
test("no query of a run's loop reads all items, attempts or outputs", async () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  const clock = new ManualClock();
  const store = workspaceOn(db, clock, "/somewhere");
  const { id: runId } = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(
    runId,
    ["a", "b", "c"].map((id, position) => newItem(id, { position })),
  );
  const [a, b, c] = (await store.items(runId)).map(({ id }) => id) as [number, number, number];
  const texts = preparedOn(db);

  const intend = (item: number) =>
    store.intend(item, { runId, sentAt: clock.now(), bodySha256: "00", spendLogId: item });
  const facts = { urls: ["https://a/1"], fetchBy: 0, charged: credits(4), createdAt: "c", completedAt: "d" };
  const parked = { models: ["other"], prices: [{ group: "g", price: credits(1) }] };
  const groups = await store.waiting(runId, { models: [], prices: [] });
  const accepted = { taskId: "t", charged: credits(4), nextAt: 0 };
  await store.conclude((await intend(a)).id, "accepted", accepted);
  await store.reschedule(a, 0, { tries: 1 });
  for (const stopped of [parked, { models: [], prices: [] }]) {
    await store.due(runId, 9, stopped, null, [b]);
    await store.due(runId, 9, stopped, groups);
    await store.waiting(runId, stopped);
  }
  await store.complete(a, facts);
  await store.expire(a, "old");
  await store.refreshOutputs(a, facts);
  await store.outputs(a);
  await store.saved(a, 1, { file: "a.png", bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" });
  await store.lost(a, 1);
  await store.conclude((await intend(b)).id, "unanswered", {});
  await store.giveVerdict(b, "charged", "lost");
  await store.apply(b, "resubmit", { nextAt: 0 });
  await store.conclude((await intend(c)).id, "accepted", { ...accepted, taskId: "u" });
  await store.apply(c, "task_failed", {});
  await store.spending(runId, { beginning: [b] });
  await store.spending(runId, { model: "picture", beginning: [b] });
  await store.counts(runId);
  await store.groups(runId);
  await store.interrupted();
  await store.items(runId, ["held"]);
  await store.items(
    runId,
    itemStates.filter((state) => !["planned", "blocked", "archived", "dropped"].includes(state)),
  );
  await store.item(b);
  await store.attempt(b);
  await store.attemptOfEntry(b);
  await store.resubmitted(runId);
  await store.orphans({ item: b });
  await store.orphans({ run: runId });
  await store.run("unfinished");
  await store.setRun(runId, { requests: 3 });
  await store.waitingOrders();
  await store.parentsOf(a);
  await store.handingOn(runId);
  await store.release(runId, []);
  await store.renewed(a, facts);
  await store.noteChildren(a, "no address");
  await store.blocked(runId);

  const found = [...texts].map((text) => ({ text, steps: growing(db, text) }));
  expect(found.length).toBeGreaterThan(40);
  expect(found.filter(({ steps }) => steps.length > 0)).toEqual([]);
});

test("a command that names an item reads no table whole", async () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  const clock = new ManualClock();
  const store = workspaceOn(db, clock, "/somewhere");
  const { id: runId, jobId } = await store.startRun((await store.job("demo")).id, runStart);
  const key = `k1:${"0123456789abcdef".repeat(4)}`;
  await store.enroll(runId, [
    newItem("a", { key, approve: true }),
    newItem("a-v2", { key: variantKey(key, 2), variant: 2, approve: true }),
  ]);
  const [a, second] = (await store.items(runId)).map(({ id }) => id) as [number, number];
  const attempt = await store.intend(a, { runId, sentAt: 0, bodySha256: "00", spendLogId: null });
  await store.conclude(attempt.id, "accepted", { taskId: "task-1" });
  const texts = preparedOn(db);

  for (const name of ["a", "0123456789", "task-1"])
    expect((await store.find(name)).map(({ id }) => id)).toEqual([a]);
  expect(await store.has(jobId, variantKey(key, 2))).toBe(true);
  expect(await store.has(jobId, variantKey(key, 3))).toBe(false);
  await store.approve([second], "approved");

  expect([...texts].filter((text) => growing(db, text).length > 0)).toEqual([]);
});

test("an item that is restored or supplied is found without reading the others of its run", async () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  const clock = new ManualClock();
  const store = workspaceOn(db, clock, "/somewhere");
  const { id: runId } = await store.startRun((await store.job("demo")).id, runStart);
  const texts = preparedOn(db);
  const file = { file: "a.png", bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" };
  await store.supply(runId, newItem("a"), file);
  const restored = {
    attempts: [],
    files: [],
    events: [],
    note: null,
    failureKind: null,
    approval: null,
    picked: false,
  };
  finish(restoreItem({ sql: sqliteQueries(db), clock }, runId, { item: newItem("b"), ...restored }));
  expect((await store.items(runId)).map(({ rowId, state }) => [rowId, state])).toEqual([
    ["a", "archived"],
    ["b", "planned"],
  ]);
  const ofRun = [...texts].filter((text) => text.includes("CROSS JOIN items"));
  expect(ofRun).toHaveLength(1);
  expect(ofRun.flatMap((text) => growing(db, text))).toEqual([]);
});

test("an item's page reads no table whole", async () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  const clock = new ManualClock();
  const store = workspaceOn(db, clock, "/somewhere");
  const { id: runId } = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(runId, [newItem("a")]);
  const [a] = (await store.items(runId)).map(({ id }) => id) as [number];
  await store.intend(a, { runId, sentAt: 0, bodySha256: "00", spendLogId: null });
  const texts = preparedOn(db);
  expect((await browserOn(sqliteDatabase(db, clock), "/somewhere").story(a))?.events).toHaveLength(1);
  expect([...texts].filter((text) => growing(db, text).length > 0)).toEqual([]);
});

test("a job's history is read page by page without reading its other items or sorting them", async () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  const store = workspaceOn(db, new ManualClock(), "/somewhere");
  const texts = preparedOn(db);
  for await (const page of store.history("demo")) expect(page).toEqual([]);
  const [text = ""] = texts;
  const steps = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all("demo", 0) as { detail: string }[];
  expect(steps.map(({ detail }) => detail)).toContain(
    "SEARCH items USING INDEX items_job (job_id=? AND rowid>?)",
  );
});

test("a kept sheet and what was made of its rows are read page by page, and no page reads those before it", async () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  const store = workspaceOn(db, new ManualClock(), "/somewhere");
  const { id: runId, jobId } = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(runId, [newItem("a")]);
  await store.keepSheet(runId, { columns: ["id"], rows: [] });
  const texts = preparedOn(db);
  for await (const page of (await store.sheetOf(runId))?.pages() ?? []) expect(page).toEqual([]);
  expect(await store.made(jobId, ["k1:a"])).toHaveLength(1);
  expect([...texts].filter((text) => text.includes("LIMIT 1000"))).toHaveLength(1);
  expect([...texts].filter((text) => growing(db, text).length > 0)).toEqual([]);
});

test("archived outputs are read page by page and in order, and no page sorts or reads those before it", async () => {
  const db = openDatabase(":memory:", workspaceMigrations);
  const clock = new ManualClock();
  const store = workspaceOn(db, clock, "/somewhere");
  const { id: runId } = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(
    runId,
    ["a", "b"].map((id, position) => newItem(id, { position })),
  );
  const numbers = Array.from({ length: 600 }, (_, index) => index + 1);
  const facts = { fetchBy: 0, charged: credits(4), createdAt: "c", completedAt: "d" };
  const wanted: [string, number][] = [];
  for (const { id, rowId } of await store.items(runId)) {
    const sent = await store.intend(id, { runId, sentAt: 0, bodySha256: "00", spendLogId: id });
    await store.conclude(sent.id, "accepted", { taskId: rowId, charged: credits(4), nextAt: 0 });
    await store.complete(id, { ...facts, urls: numbers.map((number) => `https://a/${number}`) });
    for (const number of numbers) {
      const file = `${rowId}-${number}.png`;
      await store.saved(id, number, { file, bytes: 1, sha256: "ab", mime: "image/png", check: "decoded" });
      wanted.push([rowId, number]);
    }
  }
  const texts = preparedOn(db);
  const found: [string, number][] = [];
  for await (const page of store.archived())
    for (const { item, number } of page) found.push([item.rowId, number]);
  expect(found).toEqual(wanted);
  const [text = ""] = texts;
  const values = { job: null, item: 1, number: 1 };
  const steps = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(values) as { detail: string }[];
  const [first] = steps.map(({ detail }) => detail);
  expect(first).toBe("SEARCH o USING PRIMARY KEY (item_id>?)");
  expect(steps.map(({ detail }) => detail).filter((step) => step.includes("TEMP B-TREE"))).toEqual([]);
});
