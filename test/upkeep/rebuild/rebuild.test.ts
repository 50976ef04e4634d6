import { createHash } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { Verdict } from "../../../src/core/charges/readings.js";
import { credits } from "../../../src/core/money.js";
import type { Item } from "../../../src/core/ports/store.js";
import { missingFiles } from "../../../src/job/run/prepare.js";
import { lineIn } from "../../../src/run/receipts/receipt-lines.js";
import { openSqlite } from "../../../src/sqlite.js";
import { openAccounts } from "../../../src/store/accounts/accounts.js";
import { takeLock } from "../../../src/store/lock.js";
import { openWorkspace } from "../../../src/store/workspace/workspace.js";
import { rebuildWorkspace } from "../../../src/upkeep/rebuild/rebuild.js";
import { outdatedHistory } from "../../../src/workspace/history.js";
import { openSteps } from "../../../src/workspace/state.js";
import { findWorkspace, type Workspace } from "../../../src/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { intentLine } from "../../receipt-line.js";
import { newItem, runStart } from "../../store/item-fixture.js";
import { judgementOf } from "../../store/judgement-fixture.js";
import { spoil } from "../../store/spoil.js";

const clock = new ManualClock();
let workspace: Workspace;
let lines: string[];
beforeEach(() => {
  const root = mkdtempSync(join(tmpdir(), "bulkgen-rebuild-"));
  mkdirSync(join(root, ".bulkgen"));
  workspace = findWorkspace({
    cwd: root,
    named: root,
    sandbox: false,
    env: { XDG_STATE_HOME: join(root, "x") },
  });
  lines = [];
});

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();

function intent(id: string, attempt = 1, change: object = {}): void {
  lines.push(
    JSON.stringify({
      ...intentLine,
      at: at(attempt),
      key: `k1:${id}`,
      attempt,
      spendLogId: 70 + attempt,
      job: "demo",
      manifest: "/jobs/demo.csv",
      out: workspace.outFolder,
      row: id,
      name: id,
      request: { model: "picture", prompt: `a ${id}`, params: { size: "big" }, image_url: "https://in/1" },
      ...change,
    }),
  );
}

function answer(id: string, event: string, attempt = 1, outcome: object = {}): void {
  lines.push(
    JSON.stringify({
      at: at(attempt),
      type: "answer",
      job: "demo",
      key: `k1:${id}`,
      attempt,
      event,
      ...outcome,
    }),
  );
}

function accepted(id: string, attempt = 1): void {
  intent(id, attempt);
  answer(id, "accepted", attempt, { status: 200, taskId: `task-${id}-${attempt}`, charged: 4.5 });
}

/** A file of the archive, with its line in the index. */
function archive(
  id: string,
  task: string,
  {
    file = `${id}.png`,
    output = 1,
    content = id,
    job = "demo",
    credits = 4.5,
    item = id,
  }: {
    item?: string;
    file?: string;
    output?: number;
    content?: string;
    job?: string;
    credits?: number | null;
  } = {},
): void {
  const folder = join(workspace.outFolder, job);
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), content);
  const sha256 = createHash("sha256").update(content).digest("hex");
  const line = {
    item,
    key: `k1:${id}`,
    task,
    external_task: null,
    model: "picture",
    prompt: `a ${id}`,
    params: { size: "big" },
    credits,
    created: at(1),
    completed: at(2),
    output,
    file,
    bytes: content.length,
    sha256,
    mime: "image/png",
    check: "decoded",
  };
  appendFileSync(join(folder, "index.jsonl"), `${JSON.stringify(line)}\n`);
}

async function rebuild() {
  if (lines.length > 0) writeFileSync(workspace.receiptsFile, `${lines.join("\n")}\n`);
  const rebuilt = await rebuildWorkspace({ workspace, clock, consent: async () => true });
  expect(await inStore((store) => outdatedHistory(workspace, store))).toBeNull();
  return rebuilt;
}

async function inStore<Result>(
  use: (store: ReturnType<typeof openWorkspace>) => Promise<Result>,
): Promise<Result> {
  const store = openWorkspace(workspace, clock);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

const itemsNow = (job = "demo") => inStore((store) => store.itemsOf(job));
const statesNow = async (job?: string) =>
  Object.fromEntries((await itemsNow(job)).map((item) => [item.rowId, item.state]));
const named = (items: readonly Item[], id: string) => items.find((item) => item.rowId === id) as Item;

describe("P4: from the receipts alone", () => {
  test("every submitted item comes back with its task, its request and what it was charged", async () => {
    accepted("a");
    const rebuilt = await rebuild();
    expect(rebuilt).toMatchObject({ found: 1, kept: null, readable: null, owing: [1] });
    const [item] = await itemsNow();
    expect(item).toMatchObject({
      key: "k1:a",
      rowId: "a",
      model: "picture",
      prompt: "a a",
      params: { size: "big" },
      inputs: { image_url: "https://in/1" },
      price: credits(4),
      state: "processing",
      attempted: true,
    });
    const attempt = await inStore((store) => store.attempt(item?.id ?? 0));
    expect(attempt).toMatchObject({ taskId: "task-a-1", charged: credits(4.5), number: 1, spendLogId: 71 });
    expect(attempt?.intendedAt).toBe(Date.parse(at(1)));
    expect(await inStore((store) => store.run("unfinished"))).toMatchObject({
      jobName: "demo",
      origin: "https://s.example",
      accountId: "user-1",
      manifest: "/jobs/demo.csv",
      outFolder: workspace.outFolder,
      state: "interrupted",
      options: { retries: 0, maxCredits: 0 },
    });
  });

  test("an item that took the output of another one has its reference again, not the address of that moment", async () => {
    const parent = { field: "image_url", key: "k1:cup", output: 2 };
    const change = { parents: [{ ...parent, written: "@cup[2]" }] };
    intent("clip", 1, change);
    answer("clip", "accepted", 1, { status: 200, taskId: "task-clip" });
    intent("late", 1, change);
    answer("late", "refused", 1, { status: 402, message: "INSUFFICIENT_CREDITS" });
    await rebuild();
    expect(await statesNow()).toEqual({ clip: "processing", late: "planned" });
    for (const item of await itemsNow())
      expect(item).toMatchObject({ inputs: { image_url: "@cup[2]" }, parents: [parent] });
  });

  test("a request was sent when its line says by the service's clock; without a readable time, when it was written", async () => {
    intent("told", 1, { sentAt: at(30) });
    intent("damaged", 1, { sentAt: "soon" });
    await rebuild();
    const attempts = await inStore(async (store) => {
      const items = await store.itemsOf("demo");
      return Promise.all(items.map(async ({ rowId, id }) => [rowId, (await store.attempt(id))?.sentAt]));
    });
    const sent = { told: Date.parse(at(30)), damaged: Date.parse(at(1)) };
    expect(Object.fromEntries(attempts)).toEqual(sent);
  });

  test("an intent without an answer is unknown, never submitted again", async () => {
    intent("a");
    intent("b");
    answer("b", "unanswered", 1, { message: "cut" });
    const { counts } = await rebuild();
    expect(counts).toMatchObject({ unknown: 2, planned: 0 });
    expect(await inStore((store) => store.spending(1))).toMatchObject({ charged: 0, pending: credits(8) });
  });

  test("what was refused waits for its manifest, what was rejected has failed", async () => {
    intent("a");
    answer("a", "refused", 1, { status: 402 });
    intent("b");
    answer("b", "rejected", 1, { status: 400, message: "no", failureKind: "input" });
    await rebuild();
    expect(await statesNow()).toEqual({ a: "planned", b: "failed" });
    expect(named(await itemsNow(), "a").runId).toBeNull();
    expect(await inStore((store) => store.run("unfinished"))).toBeNull();
  });

  test("several attempts of an item keep their numbers, also where one is not known any more", async () => {
    accepted("a", 1);
    accepted("a", 3);
    await rebuild();
    const attempt = await inStore(async (store) => store.attempt(named(await store.itemsOf("demo"), "a").id));
    expect(attempt).toMatchObject({ number: 3, taskId: "task-a-3" });
    // The second counts as perhaps charged.
    expect(await inStore((store) => store.spending(1))).toMatchObject({ charged: 0, pending: credits(8.5) });
  });

  test("an event of a rebuilt item belongs to its newest attempt: older ones have no events", async () => {
    accepted("a", 1);
    accepted("a", 2);
    await rebuild();
    const steps = await openSteps(workspace, clock);
    const events = (await steps.after(1, 0)).map(({ event, attempt, taskId }) => [event, attempt, taskId]);
    await steps.close();
    expect(events).toEqual([
      ["intended", 2, "task-a-2"],
      ["accepted", 2, "task-a-2"],
    ]);
  });

  test("damaged lines lose only themselves, and are reported by number", async () => {
    accepted("a");
    lines.push(
      '{"type":"answer","key":"k1:b","att',
      "\u0000\u0001garbage",
      "[]",
      '{"key":"k1:c","attempt":1}',
    );
    answer("lost", "accepted", 1, { taskId: "task-lost" });
    accepted("d");
    const { receipts, orphans } = await rebuild();
    expect(receipts).toEqual({ lines: 9, unreadable: [3, 4, 5, 6] });
    expect(orphans).toEqual(["task-lost"]);
    expect(await statesNow()).toEqual({ a: "processing", d: "processing" });
  });

  test("a flipped bit in the name of any field loses its own line alone", async () => {
    intent("b");
    answer("b", "accepted", 1, {
      status: 200,
      taskId: "task-b-1",
      externalTaskId: "x",
      charged: 4,
      nextAt: 9,
    });
    const whole = lines.splice(0);
    const names = whole.flatMap((line, at) =>
      [...line.matchAll(/"(\w+)":/g)].map(({ index }) => ({ at, index: index + 1 })),
    );
    // Names inside params are the manifest's own.
    const own = names.filter(({ at, index }) => whole[at]?.slice(index, index + 5) !== 'size"');
    expect(own.length).toBeGreaterThan(30);
    for (const { at, index } of own) {
      const line = whole[at] ?? "";
      const letter = String.fromCharCode(line.charCodeAt(index) ^ 1);
      expect(lineIn(line), line).not.toBeNull();
      expect(lineIn(line.slice(0, index) + letter + line.slice(index + 1)), line.slice(index)).toBeNull();
    }
    accepted("a");
    lines.push(...whole.map((line) => line.replace('"price"', '"qrice"').replace('"nextAt"', '"ndxtAt"')));
    expect((await rebuild()).receipts).toEqual({ lines: 4, unreadable: [3, 4] });
    expect(await statesNow()).toEqual({ a: "processing" });
  });

  test("a line with an attempt that no item has is unreadable", async () => {
    for (const attempt of [0, -1, 2_000_000_000]) accepted("a", attempt);
    accepted("b");
    const { receipts, orphans } = await rebuild();
    expect(receipts.unreadable).toEqual([1, 2, 3, 4, 5, 6]);
    expect(orphans).toEqual([]);
    expect(await statesNow()).toEqual({ b: "processing" });
  });

  test("a task that two lines claim belongs to the first", async () => {
    accepted("a");
    intent("b");
    answer("b", "accepted", 1, { taskId: "task-a-1" });
    await rebuild();
    expect(await statesNow()).toEqual({ a: "processing", b: "unknown" });
    expect(named(await itemsNow(), "b").note).toContain("task-a-1, which is that of an earlier request (a)");
  });

  test("editions and jobs have runs of their own", async () => {
    accepted("a");
    intent("b", 1, { edition: "2026-11-20" });
    intent("c", 1, { job: "other" });
    expect((await rebuild()).owing).toHaveLength(3);
    expect(
      await inStore(async (store) => (await store.runs()).map((run) => [run.jobName, run.edition])),
    ).toEqual([
      ["demo", ""],
      ["demo", "2026-11-20"],
      ["other", ""],
    ]);
  });
});

test("an index whose lines lost all but key, task and file gives the files back", async () => {
  archive("a", "task-a");
  archive("b", "task-b", { output: 1 });
  const path = join(workspace.outFolder, "demo", "index.jsonl");
  const bare = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { key, task, file, output, bytes, sha256 } = JSON.parse(line);
      return { key, task, file, output, bytes, sha256, params: [1], credits: "4", item: null };
    });
  writeFileSync(path, bare.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await rebuild();
  expect(await statesNow()).toEqual({ a: "archived", b: "archived" });
});

test("P2: what two users have sent comes back in a run of each, which alone can collect it", async () => {
  intent("a");
  intent("b", 1, { account: "user-2" });
  answer("b", "accepted", 1, { taskId: "task-b" });
  intent("c", 1, { origin: "https://other.example" });
  archive("d", "task-d");
  expect((await rebuild()).owing).toEqual([1, 2, 3]);
  const runs = await inStore(async (store) => {
    const all = await store.runs();
    return Promise.all(
      all.map(async ({ id, accountId, origin }) => [
        `${accountId} at ${new URL(origin).host}`,
        ...(await store.items(id)).map(({ rowId }) => rowId),
      ]),
    );
  });
  expect(runs).toEqual([
    ["user-1 at s.example", "a", "d"],
    ["user-2 at s.example", "b"],
    ["user-1 at other.example", "c"],
  ]);
});

describe("P4: a row that two jobs have", () => {
  const jobs = ["demo", "other"];
  const asked = (job: string, attempt = 1) => intent("a", attempt, { job });
  const took = (job: string) => answer("a", "accepted", 1, { job, taskId: `task-${job}` });
  const tasksNow = () =>
    inStore(async (store) => {
      const tasks = jobs.map(async (job) => {
        const [item] = await store.itemsOf(job);
        return item ? (await store.attempt(item.id))?.taskId : undefined;
      });
      return Promise.all(tasks);
    });

  test("comes back in both, each with its own task", async () => {
    for (const job of jobs) asked(job);
    for (const job of jobs) took(job);
    expect(await rebuild()).toMatchObject({ found: 2, orphans: [] });
    expect(await tasksNow()).toEqual(["task-demo", "task-other"]);
  });

  test("has the files that lie in its own job's folder, with or without a receipt", async () => {
    asked("demo");
    took("demo");
    for (const job of jobs) archive("a", `task-${job}`, { job, content: job });
    expect(await rebuild()).toMatchObject({ found: 2, orphans: [] });
    expect(await tasksNow()).toEqual(["task-demo", "task-other"]);
    expect([await statesNow("demo"), await statesNow("other")]).toEqual([
      { a: "archived" },
      { a: "archived" },
    ]);
  });

  test("has the file of its task also when its folder was given another name", async () => {
    for (const job of jobs) asked(job);
    for (const job of jobs) took(job);
    archive("a", "task-other", { job: "renamed" });
    expect(await rebuild()).toMatchObject({ found: 2 });
    expect([await statesNow("demo"), await statesNow("other")]).toEqual([
      { a: "processing" },
      { a: "archived" },
    ]);
  });
});

test("P4: a second request with the same number, from a restarted database, is reported as an orphan", async () => {
  accepted("a");
  intent("a");
  answer("a", "accepted", 1, { taskId: "task-second" });
  expect(await rebuild()).toMatchObject({ found: 1, orphans: ["task-second"] });
});

describe("P6: a request without an answer, whose item was submitted again", () => {
  /** An entry of the account's spend log with this verdict; returns its number. */
  async function booked(verdict: Verdict): Promise<number> {
    const accounts = openAccounts(workspace.accountsFile, clock);
    try {
      const owner = { origin: "https://s.example", fingerprint: "f1", workspace: workspace.stateFile };
      await accounts.accountOf(owner.origin, owner.fingerprint);
      const spendLog = accounts.spendLog(owner);
      const entry = await spendLog.intend({ itemKey: "k1:a", price: credits(4), at: clock.now() });
      await spendLog.answered(entry, { outcome: "unknown", completeError: false });
      const verdicts = [{ entry, verdict, evidence: "so the counters say", seq: null }];
      expect(await spendLog.keep(judgementOf(verdicts), await spendLog.seq())).toBe(true);
      return entry;
    } finally {
      await accounts.close();
    }
  }

  /** Two requests of an item: nobody knows what became of either. */
  async function twice(spendLogId: number) {
    intent("a", 1, { spendLogId });
    answer("a", "unanswered", 1, { message: "cut" });
    intent("a", 2);
    await rebuild();
    return inStore(async (store) => ({
      state: named(await store.itemsOf("demo"), "a").state,
      again: await store.resubmitted(1),
      lost: (await store.orphans({ run: 1 })).map(({ number }) => number),
      pending: (await store.spending(1)).pending,
    }));
  }

  const lost = { state: "unknown", again: credits(4), lost: [1], pending: credits(8) };

  test("counts against the bound of --orphan-credits, and stays on the list of what was lost", async () => {
    expect(await twice(71)).toEqual(lost);
  });

  test("likewise if the spend log says that it was charged, and if it cannot be read", async () => {
    expect(await twice(await booked("charged"))).toEqual(lost);
    lines = [];
    writeFileSync(workspace.accountsFile, "no database ".repeat(400));
    expect(await twice(71)).toEqual(lost);
  });

  test("is no loss if the spend log has proof that it was not charged", async () => {
    expect(await twice(await booked("not_charged"))).toEqual({
      ...lost,
      again: 0,
      lost: [],
      pending: credits(4),
    });
  });

  test("creates no spend log if there was none", async () => {
    await twice(71);
    expect(existsSync(workspace.accountsFile)).toBe(false);
  });
});

describe("P4: a database that cannot be used as it is, and may be whole, is not replaced", () => {
  test.each<[what: string, spoil: () => void, told: RegExp]>([
    [
      "may not be written",
      () => {
        // What its header says so of is read-only to everybody, also to the system's administrator.
        const bytes = readFileSync(workspace.stateFile);
        bytes[18] = 3;
        writeFileSync(workspace.stateFile, bytes);
      },
      /state\.db: attempt to write a readonly database\. It may be intact, so it is not replaced: make it and its folder writable\. Nothing was changed/,
    ],
    [
      "cannot be opened",
      () => {
        rmSync(workspace.stateFile);
        mkdirSync(workspace.stateFile);
      },
      /state\.db: unable to open database file\. It may be intact, .*: make it and its folder writable\./,
    ],
  ])("one that %s", async (_, spoil, told) => {
    accepted("a");
    await rebuild();
    spoil();
    const before = readdirSync(join(workspace.root, ".bulkgen"));
    await expect(rebuildWorkspace({ workspace, clock, consent: async () => true })).rejects.toThrow(told);
    expect(readdirSync(join(workspace.root, ".bulkgen"))).toEqual(before);
  });
});

describe("P2: a database that is older than its receipts", () => {
  const outdated = () => inStore((store) => outdatedHistory(workspace, store));

  test("is found out after a rebuild in between", async () => {
    accepted("a");
    await rebuild();
    const backup = readFileSync(workspace.stateFile);
    accepted("a", 2);
    await rebuild();
    writeFileSync(workspace.stateFile, backup);
    expect(await outdated()).toMatch(`it does not know the paid request of ${at(2)} for a;`);
    writeFileSync(workspace.stateFile, "");
    expect(await outdated()).toMatch("does not know the paid request");
  });

  test("is distinguished from another job's, which has the same row", async () => {
    accepted("a");
    await rebuild();
    intent("a", 1, { job: "other" });
    writeFileSync(workspace.receiptsFile, `${lines.join("\n")}\n`);
    expect(await outdated()).toMatch("does not know the paid request");
  });
});

describe("P4: with the archive", () => {
  test("files are matched by their content; what is gone or changed is at the service again", async () => {
    for (const id of ["a", "b", "c", "d"]) accepted(id);
    for (const id of ["a", "b", "c"]) archive(id, `task-${id}-1`);
    archive("d", "task-d-1", { file: "sub/d.png" });
    const folder = join(workspace.outFolder, "demo");
    rmSync(join(folder, "b.png"));
    writeFileSync(join(folder, "c.png"), "x");
    rmSync(join(folder, "sub"), { recursive: true });
    writeFileSync(join(folder, "sub"), "no folder");
    const rebuilt = await rebuild();
    expect(await statesNow()).toEqual({
      a: "archived",
      b: "processing",
      c: "processing",
      d: "processing",
    });
    const missing = ["b.png", "c.png", "sub/d.png"].map((file) => join("demo", file));
    expect(rebuilt.archive).toEqual({ indexes: 1, missing });
    expect(await inStore((store) => store.filesOf(1))).toEqual({ made: 1, files: 1, bytes: 1 });
    expect(await inStore((store) => store.spending(1))).toMatchObject({
      charged: credits(4.5),
      pending: credits(13.5),
    });
  });

  test("items have the names that their files were given since", async () => {
    const shown = async () =>
      (await itemsNow()).map(({ key, rowId, name }) => [key.slice("k1:".length), rowId, name]);
    for (const id of ["c", "d", "e", "f", "g", "h"]) accepted(id);
    archive("c", "task-c-1", { item: "C", file: "C.png" });
    archive("d", "task-d-1", { item: "dish", file: "shelf/dish-1.png" });
    archive("d", "task-d-1", { item: "dish", file: "shelf/dish-2.png", output: 2 });
    // A name that was taken, an earlier version, the outputs of a task, and what the index does not say.
    archive("e", "task-e-1", { file: "e-2.png" });
    archive("f", "task-f-1", { file: "_superseded/f.png" });
    for (const output of [1, 2]) archive("g", "task-g-1", { file: `g-${output}.png`, output });
    archive("h", "task-h-1", { item: "", file: "jar.png" });
    await rebuild();
    expect(await shown()).toEqual([
      ["c", "C", "C"],
      ["d", "dish", "shelf/dish"],
      ["e", "e", "e"],
      ["f", "f", "f"],
      ["g", "g", "g"],
      ["h", "h", "jar"],
    ]);
  });

  test("items whose files are in several folders get one run for each folder", async () => {
    const inPlace = workspace.outFolder;
    const elsewhere = join(workspace.root, "elsewhere");
    accepted("a");
    archive("a", "task-a-1");
    workspace = { ...workspace, outFolder: elsewhere };
    for (const id of ["b", "c"]) accepted(id);
    archive("b", "task-b-1");
    workspace = { ...workspace, outFolder: inPlace };
    expect((await rebuild()).owing).toHaveLength(1);
    expect(await statesNow()).toEqual({ a: "archived", b: "archived", c: "processing" });
    const lost = await inStore((store) => missingFiles(store, "demo", workspace));
    expect(lost).toEqual(new Map());
    expect(
      await inStore(async (store) => (await store.runs()).map((run) => [run.outFolder, run.state])),
    ).toEqual([
      [inPlace, "finished"],
      [elsewhere, "interrupted"],
    ]);
  });

  test("where a file has the name of the output folder, nothing is archived", async () => {
    const taken = join(workspace.root, "taken");
    writeFileSync(taken, "");
    workspace = { ...workspace, outFolder: taken };
    accepted("a");
    await rebuild();
    expect(await statesNow()).toEqual({ a: "processing" });
  });

  test("in a copy of which the receipts name the original's files, its own count where it has them", async () => {
    const original = workspace;
    accepted("a");
    archive("a", "task-a-1");
    const root = mkdtempSync(join(tmpdir(), "bulkgen-copy-"));
    cpSync(original.root, root, { recursive: true });
    workspace = findWorkspace({ cwd: root, named: root, sandbox: false, env: { XDG_STATE_HOME: root } });
    await rebuild();
    expect(await statesNow()).toEqual({ a: "archived" });
    expect(await inStore(async (store) => (await store.runs()).map((run) => run.outFolder))).toEqual([
      workspace.outFolder,
    ]);
  });

  test("what only the archive knows comes back archived, and is not paid for again", async () => {
    archive("a", "task-a");
    const { counts } = await rebuild();
    expect(counts).toMatchObject({ archived: 1 });
    expect(named(await itemsNow(), "a")).toMatchObject({ key: "k1:a", prompt: "a a", price: credits(4.5) });
  });

  test("what only an index knows is archived too, with its newest task, and its lost files are known", async () => {
    for (const [output, task] of [
      [1, "task-old"],
      [1, "task-new"],
      [2, "task-new"],
    ] as const)
      archive("a", task, { file: `${task}-${output}.png`, output });
    archive("b", "task-b", { file: "b-1.png" });
    archive("b", "task-b", { file: "b-2.png", output: 2 });
    archive("c", "", { credits: null });
    for (const name of ["task-old-1", "task-new-1", "task-new-2", "b-2", "c"])
      rmSync(join(workspace.outFolder, "demo", `${name}.png`));
    await rebuild();
    expect(await statesNow()).toEqual({ a: "archived", b: "archived" });
    const lost = await inStore((store) => missingFiles(store, "demo", workspace));
    expect([...lost.values()].flat()).toHaveLength(3);
  });

  test("a task that a person adopted is known from the archive", async () => {
    intent("a");
    answer("a", "unanswered");
    archive("a", "task-adopted");
    await rebuild();
    expect(await statesNow()).toEqual({ a: "archived" });
    // Its request is the one that had no answer: it was charged once.
    const attempt = await inStore(async (store) => store.attempt(named(await store.itemsOf("demo"), "a").id));
    expect(attempt).toMatchObject({
      number: 1,
      spendLogId: 71,
      taskId: "task-adopted",
      charged: credits(4.5),
    });
    expect(await inStore((store) => store.spending(1))).toMatchObject({ charged: credits(4.5), pending: 0 });
  });

  test("a task from long before an unanswered request is not its task; the request may have been charged too", async () => {
    intent("a", 1, { at: at(40) });
    answer("a", "unanswered");
    archive("a", "task-before");
    await rebuild();
    expect(await statesNow()).toEqual({ a: "archived" });
    expect(await inStore((store) => store.spending(1))).toMatchObject({
      charged: credits(4.5),
      pending: credits(4),
    });
  });

  test("files that were made elsewhere belong to no task, and cost nothing", async () => {
    for (const id of ["a", "b"]) archive(id, "", { credits: null });
    accepted("c");
    await rebuild();
    expect(await statesNow()).toEqual({ a: "archived", b: "archived", c: "processing" });
    expect(await inStore(async (store) => (await store.files("demo")).map(({ taskId }) => taskId))).toEqual([
      "",
      "",
    ]);
    expect(await inStore((store) => store.spending(1))).toMatchObject({ charged: 0, pending: credits(4.5) });
  });

  test("a file of an earlier task is there while a newer request has no answer", async () => {
    accepted("a", 1);
    intent("a", 2);
    answer("a", "unanswered", 2);
    archive("a", "task-a-1");
    await rebuild();
    expect(await statesNow()).toEqual({ a: "unknown" });
  });

  test("files that were paid for again after they were lost count twice", async () => {
    for (const number of [1, 2]) {
      accepted("a", number);
      archive("a", `task-a-${number}`, { file: `a-${number}.png` });
    }
    rmSync(join(workspace.outFolder, "demo", "a-1.png"));
    await rebuild();
    expect(await statesNow()).toEqual({ a: "archived" });
    expect(await inStore((store) => store.spending(1))).toMatchObject({ charged: credits(9), pending: 0 });
  });

  test("a task with one missing output is polled again", async () => {
    accepted("a");
    accepted("b");
    for (const output of [1, 2]) archive("a", "task-a-1", { file: `a-${output}.png`, output });
    archive("b", "task-b-1", { file: "b-1.png" });
    await rebuild();
    expect(await statesNow()).toEqual({ a: "archived", b: "processing" });
  });
});

describe("the old database", () => {
  test("is kept beside the new one, which is whole", async () => {
    accepted("a");
    writeFileSync(workspace.stateFile, "no database ".repeat(400));
    const { kept, readable } = await rebuild();
    expect([readable, kept]).toEqual([
      null,
      expect.stringMatching(/state\.db\.before-2026-01-01T00-00-00\.000Z$/),
    ]);
    const db = openSqlite(workspace.stateFile);
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
    db.close();
  });

  test("is not called readable if a page of it is damaged that is not met when it is counted", async () => {
    accepted("a");
    const store = openWorkspace(workspace, clock);
    await store.close();
    spoil(workspace.stateFile, "runs");
    expect(await rebuild()).toMatchObject({ found: 1, readable: null });
  });

  test("stays as it is without consent, while a run holds it, and where there is nothing to rebuild from", async () => {
    await expect(rebuild()).rejects.toThrow(/nothing to rebuild from.*nothing was changed/);
    accepted("a");
    await rebuild();
    const before = readdirSync(workspace.markerFolder);
    const refused = rebuildWorkspace({ workspace, clock, consent: async () => false });
    await expect(refused).rejects.toThrow("nothing was changed");
    const lock = takeLock(workspace.lockFile);
    await expect(rebuild()).rejects.toThrow("a run is using the workspace");
    lock?.release();
    expect(readdirSync(workspace.markerFolder).toSorted()).toEqual(before.toSorted());
  });

  test("of a state folder elsewhere that is lost is made from the archive, or stays lost", async () => {
    const { root, markerFolder } = workspace;
    const state = join(root, "gone", "state");
    const identity = { id: "one", state, host: "elsewhere", why: "nfs4" };
    writeFileSync(join(markerFolder, "workspace.json"), JSON.stringify(identity));
    workspace = findWorkspace({
      cwd: root,
      named: root,
      sandbox: false,
      env: { XDG_STATE_HOME: join(root, "x") },
    });
    await expect(rebuild()).rejects.toThrow("nothing to rebuild from");
    expect(existsSync(state)).toBe(false);
    archive("a", "task-a");
    expect(await rebuild()).toMatchObject({ database: join(state, "state.db"), found: 1 });
    expect(await statesNow()).toEqual({ a: "archived" });
  });

  test("of a newer program is not replaced by an older one", async () => {
    accepted("a");
    await rebuild();
    const db = openSqlite(workspace.stateFile);
    db.pragma("user_version = 999");
    db.close();
    await expect(rebuild()).rejects.toThrow("written by a newer bulkgen");
  });
});

test("an old database counts with all its items, also those that are in no run any more", async () => {
  intent("cup");
  answer("cup", "accepted", 1, { taskId: "t-cup", charged: 4 });
  writeFileSync(workspace.receiptsFile, `${lines.join("\n")}\n`);
  const store = openWorkspace(workspace, clock);
  const { id } = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(id, [newItem("cup"), newItem("leaf")]);
  await store.enroll(id, [newItem("leaf")]);
  await store.close();
  const { readable } = await rebuildWorkspace({ workspace, clock, consent: async () => true });
  expect(readable).toBe(2);
});
