import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { credits } from "../../src/core/money.js";
import type { Attempt } from "../../src/core/ports/attempt.js";
import type { Disk } from "../../src/core/ports/disk.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Item, Run } from "../../src/core/ports/store.js";
import { openReceipts } from "../../src/run/receipts/receipts.js";
import { systemError, watchedDisk } from "../archive/watched-disk.js";
import { newItem, runStart } from "../store/item-fixture.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

const run = { ...runStart, id: 1, jobName: "demo" } as unknown as Run;
const item = newItem("a") as unknown as Item;
const other = newItem("b") as unknown as Item;
const first = { number: 1, sentAt: 0, spendLogId: null } as unknown as Attempt;
const attempt = { number: 2, sentAt: 60_000, spendLogId: null } as unknown as Attempt;
const accepted = {
  event: "accepted",
  outcome: { taskId: "t1", charged: credits(4.5), status: 200 },
} as const;

let file: string;
const place = () => ({ receiptsFile: file, root: dirname(file) });
beforeEach(() => {
  file = join(mkdtempSync(join(tmpdir(), "bulkgen-receipts-")), "deep", "receipts.jsonl");
});

describe("the receipts", () => {
  test("P4: say after a restart what an attempt was answered", async () => {
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    expect(await receipts.answerTo(run, item, attempt)).toBeNull();
    await receipts.answer(run, item, attempt, accepted);
    expect(await openReceipts(nodeDisk, place(), () => 0).answerTo(run, item, attempt)).toEqual(accepted);
    expect(await receipts.answerTo(run, item, first)).toBeNull();
    expect(await receipts.answerTo(run, other, attempt)).toBeNull();
  });

  test("P4: use paths relative to the workspace's folder, so that the workspace can be moved", async () => {
    const { root } = place();
    const manifest = "/elsewhere/demo.csv";
    const moves = { ...run, manifest, outFolder: join(root, "outputs") };
    await openReceipts(nodeDisk, place(), () => 0).intent(moves, item, attempt, '{"model":"picture"}');
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ manifest, out: "./outputs" });
  });

  test("P6: say when a request was sent by the service's clock, whatever the one here shows", async () => {
    await openReceipts(nodeDisk, place(), () => 0).intent(run, item, attempt, '{"model":"picture"}');
    const times = { at: "1970-01-01T00:00:00.000Z", sentAt: "1970-01-01T00:01:00.000Z" };
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject(times);
  });

  test("a line that was cut short loses itself and no other", async () => {
    await openReceipts(nodeDisk, place(), () => 0).answer(run, item, attempt, accepted);
    appendFileSync(file, '{"type":"answer","key":"k1:a","att');
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    await receipts.answer(run, other, attempt, accepted);
    expect(await receipts.answerTo(run, item, attempt)).toEqual(accepted);
    expect(await receipts.answerTo(run, other, attempt)).toEqual(accepted);
  });

  test("P4: find an answer however much was written before and after it", async () => {
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    const noise = { ...newItem("noise"), name: "ä".repeat(5_000) } as unknown as Item;
    const writeMuch = async () => {
      for (let number = 1; number <= 120; number++)
        await receipts.intent(run, noise, { ...attempt, number }, '{"model":"picture"}');
    };
    await writeMuch();
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    await receipts.answer(run, item, attempt, accepted);
    await receipts.intent(run, other, attempt, '{"model":"picture"}');
    await writeMuch();
    expect(readFileSync(file).length).toBeGreaterThan(2_000_000);
    expect(await receipts.answerTo(run, item, attempt)).toEqual(accepted);
    expect(await receipts.answerTo(run, other, attempt)).toBeNull();
    expect(await receipts.answerTo(run, item, first)).toBeNull();
  });

  test("go on in a new folder when somebody took theirs away", async () => {
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    rmSync(dirname(file), { recursive: true });
    await receipts.answer(run, item, attempt, accepted);
    expect(await receipts.answerTo(run, item, attempt)).toEqual(accepted);
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    expect(existsSync(join(dirname(file), "receipts.reserve"))).toBe(true);
  });

  test("lines that are written concurrently do not tear each other", async () => {
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    const keys = Array.from({ length: 20 }, (_, index) => `k1:${index}`);
    await Promise.all(keys.map((key) => receipts.answer(run, { ...item, key }, attempt, accepted)));
    const lines = readFileSync(file, "utf8").trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).key)).toEqual(keys);
  });
});

describe("lines that are written at about the same time", () => {
  /** How many lines each append had. */
  const appends: number[] = [];
  let refuse: (path: string) => void = () => {};
  const disk: Disk = {
    ...nodeDisk,
    append: async (path, text) => {
      refuse(path);
      if (path === file) appends.push(text.trim().split("\n").length);
      await nodeDisk.append(path, text);
    },
  };
  beforeEach(() => {
    appends.length = 0;
    refuse = () => {};
  });

  test("share one append and its sync, and each is there before its writer continues", async () => {
    const receipts = openReceipts(disk, place(), () => 0);
    const keys = Array.from({ length: 20 }, (_, index) => `k1:${index}`);
    await Promise.all(
      keys.map(async (key) => {
        await receipts.intent(run, { ...item, key }, attempt, "{}");
        expect(readFileSync(file, "utf8")).toContain(`"${key}"`);
      }),
    );
    expect(appends.reduce((sum, lines) => sum + lines)).toBe(20);
    expect(appends.length).toBeLessThanOrEqual(3);
  });

  test("P17: on a full disk the answers are written where room was kept, and no request is sent for the others", async () => {
    const receipts = openReceipts(disk, place(), () => 0);
    await receipts.intent(run, item, attempt, "{}");
    refuse = () => {
      if (existsSync(join(dirname(file), "receipts.reserve"))) throw systemError("ENOSPC");
    };
    const [, answer, intent] = await Promise.allSettled([
      receipts.answer(run, other, first, accepted),
      receipts.answer(run, item, attempt, accepted),
      receipts.intent(run, other, attempt, "{}"),
    ]);
    expect(answer).toMatchObject({ status: "fulfilled" });
    expect(intent).toMatchObject({ status: "rejected", reason: { code: "ENOSPC" } });
    expect(await receipts.answerTo(run, item, attempt)).toEqual(accepted);
    expect(readFileSync(file, "utf8").match(/"type":"intent"/g)).toHaveLength(1);
  });
});

describe("the answer to an attempt of a row that two jobs have", () => {
  const two = { ...run, id: 2, jobName: "two" } as unknown as Run;
  const refused = { event: "refused", outcome: { status: 402 } } as const;
  test("P2: belongs to its own job", async () => {
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    await receipts.intent(two, item, attempt, '{"model":"picture"}');
    await receipts.answer(run, item, attempt, refused);
    expect(await receipts.answerTo(two, item, attempt)).toBeNull();
    await receipts.answer(two, item, attempt, accepted);
    expect(await receipts.answerTo(run, item, attempt)).toEqual(refused);
    expect(await receipts.answerTo(two, item, attempt)).toEqual(accepted);
  });

  test("is the same under a later run of the job", async () => {
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    await receipts.answer(run, item, attempt, accepted);
    expect(await receipts.answerTo({ ...run, id: 7 }, item, attempt)).toEqual(accepted);
  });

  test("P2: is not that of an attempt which had the same number in a database that was lost", async () => {
    const receipts = openReceipts(nodeDisk, place(), () => 0);
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    await receipts.answer(run, item, attempt, refused);
    await receipts.intent(run, item, attempt, '{"model":"picture"}');
    expect(await receipts.answerTo(run, item, attempt)).toBeNull();
  });
});

describe("on a disk that fills between a request and its answer", () => {
  const reserve = () => nodeDisk.size(join(dirname(file), "receipts.reserve"));
  let full = false;
  const disk = watchedDisk(nodeDisk, (step, path) => {
    // Room is what the reserve gives up, as it is on a disk that others have filled.
    if (full && step === "append" && existsSync(join(dirname(path), "receipts.reserve")))
      throw systemError("ENOSPC");
  });
  beforeEach(() => {
    full = false;
  });

  test("P17: the answer goes where room was kept for it", async () => {
    const receipts = openReceipts(disk, place(), () => 0);
    await receipts.intent(run, item, attempt, "{}");
    expect(await reserve()).toBe(1024 * 1024);
    full = true;
    await receipts.answer(run, item, attempt, accepted);
    expect(await reserve()).toBeNull();
    expect(await receipts.answerTo(run, item, attempt)).toEqual(accepted);
  });

  test("P17: nothing more is asked until the room is kept again", async () => {
    const receipts = openReceipts(disk, place(), () => 0);
    await receipts.intent(run, item, attempt, "{}");
    full = true;
    await receipts.answer(run, item, attempt, accepted);
    writeFileSync(join(dirname(file), "receipts.reserve"), "cut short");
    await expect(receipts.intent(run, item, attempt, "{}")).rejects.toMatchObject({ code: "ENOSPC" });
    full = false;
    await receipts.intent(run, item, attempt, "{}");
    expect(await reserve()).toBe(1024 * 1024);
  });
});

describe("a run", () => {
  let world: World;
  afterEach(() => world.close());
  const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;
  const isFirst = (request: string) => request.startsWith("POST") && posts() === 1;

  test("P1: a request whose intent cannot be made durable never leaves, and goes when the disk takes it", async () => {
    world = await openWorld();
    const started = await start(world, [picture("a", 0)]);
    world.refuseReceipts = true;
    const interrupt = new AbortController();
    const tries: number[] = [];
    const { alarm } = world.clock;
    world.clock.alarm = (at, ring) => {
      tries.push(at);
      if (tries.length > 5) interrupt.abort();
      return alarm.call(world.clock, at, ring);
    };
    await carryOn(world, started, { interrupt: interrupt.signal });
    world.clock.alarm = alarm;
    expect(world.sent).toEqual([]);
    expect(await states(world, started)).toEqual({ a: "planned" });
    world.refuseReceipts = false;
    await carryOn(world, started);
    expect(await states(world, started)).toEqual({ a: "archived" });
  });

  test("P17: receipts that cannot be written are reported while the run waits for them, and at its end", async () => {
    world = await openWorld();
    const started = await start(world, [picture("a", 0)]);
    world.refuseReceipts = true;
    const interrupt = new AbortController();
    world.onProgress = ({ reason }) => {
      if (reason?.kind === "receipts") interrupt.abort();
    };
    const ended = await carryOn(world, started, { interrupt: interrupt.signal });
    const told = /^the receipts cannot be written \(.*ENOSPC/;
    expect(world.progress.map(({ reason }) => reason?.text)).toContainEqual(
      expect.stringMatching(/^the receipts of paid requests cannot be written .*ENOSPC/),
    );
    expect(ended.gate.refusedByDisk).toMatch(told);
    world.refuseReceipts = false;
    world.progress.length = 0;
    const second = await carryOn(world, started);
    expect(world.progress.at(-1)?.reason).toBeNull();
    expect(second.gate.refusedByDisk).toBeNull();
  });

  test("P4: an answer that reached the receipts and not the database is not lost", async () => {
    world = await openWorld();
    const started = await start(world, [picture("a", 0)]);
    const { conclude } = world.store;
    world.store.conclude = () => Promise.reject(new Error("the power went"));
    await expect(carryOn(world, started)).rejects.toThrow("the power went");
    world.store.conclude = conclude;
    expect(await states(world, started)).toEqual({ a: "submitting" });
    await carryOn(world, started);
    expect(await states(world, started)).toEqual({ a: "archived" });
    expect(posts()).toBe(1);
  });

  test.each<[name: string, lost: Reply | null]>([
    ["was not sent at first", { kind: "not_sent", reason: "no connection" }],
    ["was accepted at once", null],
  ])(
    "P2: that ended in a request for a row which another job has, where it %s, pays once",
    async (_, lost) => {
      world = await openWorld();
      const other = await start(world, [picture("a", 0)], "other");
      world.tamper = async (request, pass) => (lost !== null && isFirst(request) ? lost : pass());
      await carryOn(world, other);
      expect(await states(world, other)).toEqual({ a: "archived" });

      const started = await start(world, [picture("a", 0)]);
      const before = posts();
      world.tamper = async (request, pass) => {
        const reply = await pass();
        if (request.startsWith("POST")) throw new Error("the power went");
        return reply;
      };
      await expect(carryOn(world, started)).rejects.toThrow("the power went");
      world.tamper = null;
      await carryOn(world, started, { reads: true });
      expect((await states(world, started))["a"]).toMatch(/unknown|held/);
      expect(posts()).toBe(before + 1);
    },
  );

  test("P4: an answer is not lost when the shared ledger of requests cannot be written", async () => {
    world = await openWorld();
    const started = await start(world, [picture("a", 0)]);
    const { answered } = world.accounts;
    world.accounts.answered = () => Promise.reject(new Error("database or disk is full"));
    await carryOn(world, started);
    world.accounts.answered = answered;
    expect(await states(world, started)).toEqual({ a: "archived" });
  });
});
