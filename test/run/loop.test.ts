import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { fingerprint } from "../../src/api/key.js";
import { credits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import { keeping } from "../../src/run/gate/caps.js";
import { submit } from "../../src/run/submit.js";
import type { SandboxOptions } from "../../src/sandbox/sandbox.js";
import {
  carryOn,
  markNow,
  openWorld,
  picture,
  type RunChange,
  start,
  states,
  type World,
} from "./harness.js";

let world: World;
afterEach(() => world.close());

async function open(options: Partial<SandboxOptions> = {}): Promise<World> {
  world = await openWorld(options);
  return world;
}

const pictures = (count: number) =>
  Array.from({ length: count }, (_, index) => picture(`p${index + 1}`, index));
const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;

describe("a whole run", () => {
  test("every item is submitted once, polled and archived, with two requests an item", async () => {
    await open();
    const run = await start(world, pictures(6));
    const session = await carryOn(world, run);
    expect(session.gate.stops).toEqual([]);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(posts()).toBe(6);
    expect(session.gate.requests).toBe(12);
    const folder = join(world.folder, "outputs", "demo");
    const lines = readFileSync(join(folder, "index.jsonl"), "utf8").trim().split("\n");
    const files = lines.map((line) => JSON.parse(line).file as string);
    expect(files.toSorted()).toEqual(["p1.png", "p2.png", "p3.png", "p4.png", "p5.png", "p6.png"]);
    for (const file of files) expect(existsSync(join(folder, file))).toBe(true);
  });

  test("P2: an item that was chosen as planned and is not any more is not submitted, and gives its place back", async () => {
    await open();
    const run = await start(world, pictures(1));
    const session = await carryOn(world, run);
    const [item] = await world.store.items(run.id);
    const { accounts, accountId, fingerprint: key } = session.ports;
    const used = async () => (await accounts.quota(accountId)).minute.used;
    const before = await used();
    const { ticket } = await accounts.reserve({ accountId, fingerprint: key }, "generate");
    if (!ticket) throw new Error("no place");
    await submit(session, item?.id ?? 0, ticket);
    expect(posts()).toBe(1);
    expect(await used()).toBe(before);
    expect(await session.ports.spendLog.open()).toEqual([]);
  });

  test("P2: going on with a finished run sends nothing", async () => {
    await open();
    const run = await start(world, pictures(2));
    await carryOn(world, run);
    world.sent.length = 0;
    await carryOn(world, run);
    expect(world.sent).toEqual([]);
  });

  test("P9: a set larger than the minute's quota waits for places and is never refused", async () => {
    await open({ plan: "Starter", credits: 5_000 });
    const run = await start(world, pictures(20));
    const statuses: number[] = [];
    world.tamper = async (_, pass) => {
      const reply = await pass();
      if (reply.kind === "answer") statuses.push(reply.status);
      return reply;
    };
    await carryOn(world, run, { perMinute: 30, perDay: 1_000 });
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(world.progress.some((progress) => progress.reason?.kind === "minute")).toBe(true);
  });
});

describe("a paid request without a clear answer", () => {
  const cut: Reply = { kind: "no_answer", reason: "other side closed" };

  test("P2: is held and never sent again, though the task was made", async () => {
    await open();
    const run = await start(world, pictures(3));
    let cuts = 1;
    world.tamper = async (request, pass) => {
      const reply = await pass();
      return request.startsWith("POST") && cuts-- > 0 ? cut : reply;
    };
    const session = await carryOn(world, run, { lanes: 1 });
    expect(Object.values(await states(world, run)).toSorted()).toEqual(["archived", "archived", "held"]);
    expect(posts()).toBe(3);
    expect(session.gate.stops).toEqual([]);
    await carryOn(world, run);
    expect(posts()).toBe(3);
  });

  test("P1 P2: an item whose process died between intent and answer is held when the run continues", async () => {
    await open();
    const run = await start(world, pictures(2));
    const [first] = await world.store.items(run.id);
    await world.store.intend(first?.id ?? 0, {
      runId: run.id,
      sentAt: world.clock.now(),
      bodySha256: "00",
      spendLogId: null,
    });
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "held", p2: "archived" });
    expect(posts()).toBe(1);
  });

  test("P2: an item that was unknown and not yet held when the process died is held when the run continues", async () => {
    await open();
    const run = await start(world, pictures(1));
    const [first] = await world.store.items(run.id);
    const attempt = await world.store.intend(first?.id ?? 0, {
      runId: run.id,
      sentAt: world.clock.now(),
      bodySha256: "00",
      spendLogId: null,
    });
    await world.store.conclude(attempt.id, "unanswered", { message: "other side closed" });
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "held" });
    expect(posts()).toBe(0);
  });

  test("P2: a request that never left is sent again", async () => {
    await open();
    const run = await start(world, pictures(1));
    let failures = 3;
    world.tamper = async (_, pass) =>
      failures-- > 0 ? { kind: "not_sent", reason: "connect ECONNREFUSED" } : pass();
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(posts()).toBe(4);
  });
});

describe("what stops a run", () => {
  test("402 stops submitting, the rest is collected and nothing is lost", async () => {
    await open({ credits: 9 });
    const run = await start(world, pictures(4));
    const session = await carryOn(world, run);
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["credits"]);
    const found = Object.values(await states(world, run));
    expect(found).toContain("archived");
    expect(found).toContain("planned");
    expect(new Set(found)).toEqual(new Set(["archived", "planned"]));
  });

  test("--unreachable-wait ends the run in time, also when many requests fail at once", async () => {
    await open();
    const run = await start(world, pictures(8));
    world.tamper = async () => ({ kind: "not_sent", reason: "connect ECONNREFUSED" });
    const begun = world.clock.now();
    const session = await carryOn(world, run, { unreachableMs: 20_000 });
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["unreachable"]);
    expect(world.clock.now() - begun).toBeLessThanOrEqual(21_000);
  });

  test("a service that cannot be reached for too long ends the run, and a later run continues", async () => {
    await open();
    const run = await start(world, pictures(2));
    world.tamper = async () => ({ kind: "not_sent", reason: "connect ECONNREFUSED" });
    const session = await carryOn(world, run, { unreachableMs: 20_000 });
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["unreachable"]);
    expect(await states(world, run)).toEqual({ p1: "planned", p2: "planned" });
    world.tamper = null;
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived" });
  });

  test("P7: the cap is kept over interruptions", async () => {
    await open();
    const run = await start(world, pictures(5));
    const maxCredits = credits(8);
    const session = await carryOn(world, run, { maxCredits });
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["cap"]);
    await carryOn(world, run, { maxCredits });
    expect(Object.values(await states(world, run)).filter((state) => state === "archived")).toHaveLength(2);
    expect(posts()).toBe(2);
  });

  test("an interrupted run awaits the answers in flight and leaves nothing submitting", async () => {
    await open();
    const run = await start(world, pictures(4));
    const controller = new AbortController();
    world.tamper = async (_, pass) => {
      controller.abort();
      return pass();
    };
    const session = await carryOn(world, run, { interrupt: controller.signal });
    expect(session.gate.stopped("interrupted")).toBe(true);
    const found = Object.values(await states(world, run));
    expect(found).toContain("processing");
    expect(found).not.toContain("submitting");
    expect(found).not.toContain("held");
    world.tamper = null;
    await carryOn(world, run);
    expect(posts()).toBe(4);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
  });
});

describe("tasks", () => {
  test("a task that fails keeps its reason, costs nothing and is not tried again", async () => {
    await open();
    const run = await start(world, [
      picture("bad", 0, { prompt: "something [[moderation]] forbids" }),
      picture("good", 1),
    ]);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ bad: "failed", good: "archived" });
    const bad = (await world.store.items(run.id)).find((item) => item.rowId === "bad");
    expect(bad?.note).toMatch(/moderation/i);
    expect((await world.store.spending(run.id)).pending).toBe(0);
    expect(posts()).toBe(2);
  });

  test("a request that the service rejects fails its item and no other", async () => {
    await open();
    const run = await start(world, [picture("odd", 0, { model: "no-such-model" }), picture("good", 1)]);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ odd: "failed", good: "archived" });
  });

  test("P2: a task that takes longer than ten minutes is overdue, never resubmitted, and collected later", async () => {
    await open({ taskMs: { min: 900_000, max: 900_000 } });
    const run = await start(world, pictures(1));
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "overdue" });
    world.clock.advance(3_600_000);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(posts()).toBe(1);
  });

  test("tasks that all take nine minutes are awaited, none is overdue, and none is asked for every ten seconds", async () => {
    await open({ taskMs: { min: 540_000, max: 540_000 } });
    const run = await start(world, pictures(4));
    await carryOn(world, run);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(world.progress.some(({ counts }) => counts.overdue > 0)).toBe(false);
    expect(posts()).toBe(4);
    expect(world.sent.length).toBeLessThan(4 * 40);
  });

  test("P2: a task that the service does not know any more stays alive", async () => {
    await open();
    const run = await start(world, pictures(1));
    let misses = 3;
    world.tamper = async (request, pass) =>
      request.startsWith("GET") && misses-- > 0
        ? { kind: "answer", status: 404, headers: {}, body: "{}" }
        : pass();
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(posts()).toBe(1);
  });

  test.each<[string, Reply]>([
    ["a connection that is not up yet", { kind: "not_sent", reason: "getaddrinfo ENOTFOUND" }],
    ["an answer that was cut off", { kind: "no_answer", reason: "the connection was reset" }],
    ["a gateway's 502", { kind: "answer", status: 502, headers: {}, body: "" }],
    ["a refusal for now", { kind: "answer", status: 429, headers: { "retry-after": "1" }, body: "{}" }],
  ])("%s does not make a task overdue that has long been finished", async (_, first) => {
    await open();
    const run = await start(world, pictures(8));
    const interrupt = new AbortController();
    world.tamper = async (request, pass) => {
      const reply = await pass();
      if (posts() === 8) interrupt.abort();
      return request.startsWith("GET") ? first : reply;
    };
    await carryOn(world, run, { interrupt: interrupt.signal });
    world.clock.advance(12 * 3_600_000);
    let left = 4;
    world.tamper = async (request, pass) => (request.startsWith("GET") && left-- > 0 ? first : pass());
    await carryOn(world, run);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
  });

  test("an outage ends the run and makes no task overdue", async () => {
    await open();
    const run = await start(world, pictures(8));
    world.tamper = async (request, pass) =>
      request.startsWith("GET") ? { kind: "no_answer", reason: "timeout" } : pass();
    await carryOn(world, run, { unreachableMs: 3_600_000 });
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["processing"]));
    expect(world.sent.length).toBeLessThan(8 * 80);
  });

  test("P15: a lost output is soon held for a person, however many other tasks are overdue", async () => {
    await open({ urlMs: 30_000 });
    const run = await start(world, pictures(16));
    const missing: Reply = { kind: "answer", status: 404, headers: {}, body: "{}" };
    const began = world.clock.now();
    let finishedAt: number | null = null;
    let heldAt = Number.POSITIVE_INFINITY;
    world.tamper = async (request, pass) => {
      if (request.startsWith("POST")) return pass();
      if (finishedAt !== null || world.clock.now() - began < 900_000) return missing;
      finishedAt = world.clock.now();
      const reply = await pass();
      world.clock.advance(60_000);
      return reply;
    };
    world.onProgress = ({ counts }) => {
      if (counts.held === 1) heldAt = Math.min(heldAt, world.clock.now());
    };
    await carryOn(world, run, { perDay: 1_000, overdueWaitMs: 7_200_000 });
    const found = Object.values(await states(world, run)).toSorted();
    expect(found).toEqual(["held", ...Array.from({ length: 15 }, () => "overdue")].toSorted());
    expect(heldAt - (finishedAt ?? 0)).toBeLessThan(600_000);
  });

  test("P15: expired addresses are requested again, at no cost", async () => {
    await open({ urlMs: 30_000 });
    const run = await start(world, pictures(1));
    world.tamper = async (request, pass) => {
      const reply = await pass();
      if (request.startsWith("GET") && world.sent.length === 2) world.clock.advance(60_000);
      return reply;
    };
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(world.sent).toHaveLength(3);
  });

  test.each<[string, Reply]>([
    ["is lost", { kind: "no_answer", reason: "connection reset" }],
    ["fails", { kind: "answer", status: 500, headers: {}, body: "" }],
  ])("P15: when the request for fresh addresses %s, it is made again within seconds", async (_, reply) => {
    await open({ urlMs: 30_000 });
    const run = await start(world, pictures(1));
    let expiredAt = 0;
    world.tamper = async (request, pass) => {
      if (request.startsWith("GET") && world.sent.length === 3) return reply;
      const passed = await pass();
      if (request.startsWith("GET") && world.sent.length === 2) {
        world.clock.advance(60_000);
        expiredAt = world.clock.now();
      }
      return passed;
    };
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(world.sent).toHaveLength(4);
    expect(world.clock.now() - expiredAt).toBeLessThan(30_000);
  });
});

describe("failures, sorted", () => {
  const noteOf = async (run: Run, rowId: string) =>
    (await world.store.items(run.id)).find((item) => item.rowId === rowId);

  test("a failure at the provider is retried once automatically, and then the item has failed", async () => {
    await open();
    const run = await start(world, [picture("bad", 0, { prompt: "a [[provider-error]] of sorts" })]);
    await carryOn(world, run);
    expect(posts()).toBe(2);
    expect(await noteOf(run, "bad")).toMatchObject({ state: "failed", failureKind: "provider", failures: 2 });
    await carryOn(world, run, { retries: 5 });
    expect(posts()).toBe(2);
  });

  test("an item that moderation refused is never retried automatically", async () => {
    await open();
    const run = await start(world, [picture("bad", 0, { prompt: "something [[moderation]] forbids" })]);
    await carryOn(world, run, { retries: 5 });
    expect(posts()).toBe(1);
    expect(await noteOf(run, "bad")).toMatchObject({ state: "failed", failureKind: "moderation" });
  });

  test("a model that the service drops in mid-run parks its items while others go on", async () => {
    await open();
    const items = [
      ...["a", "b", "c"].map((id, index) => picture(id, index, { model: "gone-model" })),
      ...["d", "e"].map((id, index) => picture(id, index + 3)),
    ];
    const run = await start(world, items);
    const session = await carryOn(world, run, { lanes: 1 });
    expect(await states(world, run)).toEqual({
      a: "failed",
      b: "planned",
      c: "planned",
      d: "archived",
      e: "archived",
    });
    expect(session.gate.breaker.messages).toEqual([expect.stringContaining("items of gone-model wait")]);
    expect(posts()).toBe(3);
  });

  test("five equal failures in a row park a model", async () => {
    await open();
    const bad = Array.from({ length: 8 }, (_, index) =>
      picture(`p${index}`, index, { prompt: `[[provider-error]] ${index}` }),
    );
    const run = await start(world, bad);
    await carryOn(world, run, { lanes: 1, retries: 0, perMinute: 6 });
    const found = Object.values(await states(world, run));
    expect(found.filter((state) => state === "failed").length).toBeGreaterThanOrEqual(5);
    expect(found).toContain("planned");
  });

  test("--max-failures ends submitting, as a number or as a share", async () => {
    for (const maxFailures of [{ count: 2 }, { percent: 25 }]) {
      await open();
      const bad = Array.from({ length: 8 }, (_, index) =>
        picture(`p${index}`, index, { prompt: `[[moderation]] ${index}` }),
      );
      const run = await start(world, bad);
      const session = await carryOn(world, run, { lanes: 1, maxFailures, perMinute: 4 });
      expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["failures"]);
      expect(Object.values(await states(world, run))).toContain("planned");
    }
  });
});

describe("waiting", () => {
  test("a run that waits for credits continues automatically when there are enough", async () => {
    await open({ credits: 9 });
    const run = await start(world, pictures(4));
    let balanceLooks = 0;
    world.tamper = async (request, pass) => {
      const reply = await pass();
      if (request !== "GET /api/v1/me" || reply.kind !== "answer") return reply;
      balanceLooks++;
      const body = JSON.parse(reply.body);
      return {
        ...reply,
        body: JSON.stringify({ ...body, credits: { ...body.credits, balance: balanceLooks < 3 ? 1 : 400 } }),
      };
    };
    const began = world.clock.now();
    const interrupt = new AbortController();
    const watched = setWatch(() => balanceLooks >= 3, interrupt);
    const session = await carryOn(world, run, { onInsufficient: "wait", interrupt: interrupt.signal });
    watched();
    expect(session.gate.stopped("credits")).toBe(false);
    expect(balanceLooks).toBe(3);
    expect(world.clock.now() - began).toBeGreaterThanOrEqual(15 * 60_000);
    expect(posts()).toBeGreaterThan(4);
  });

  test("after the deadline nothing is submitted, and what is at the service is collected", async () => {
    await open();
    const run = await start(world, pictures(12));
    const session = await carryOn(world, run, { deadline: world.clock.now() + 30_000, perMinute: 10 });
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["time"]);
    const found = Object.values(await states(world, run));
    expect(new Set(found)).toEqual(new Set(["archived", "planned"]));
  });

  test("overdue tasks keep the run open for as long as was asked", async () => {
    await open({ taskMs: { min: 900_000, max: 900_000 } });
    const run = await start(world, pictures(1));
    await carryOn(world, run, { overdueWaitMs: 3_600_000 });
    expect(await states(world, run)).toEqual({ p1: "archived" });
  });

  test("P7: a cap that was reached holds no longer than its credits are spoken for: an overdue task fails", async () => {
    await open({ taskMs: { min: 900_000, max: 900_000 } });
    const run = await start(world, [
      picture("bad", 1, { prompt: "a [[provider-error]] of sorts" }),
      picture("good", 2),
      picture("more", 3),
    ]);
    const stood: string[] = [];
    world.onProgress = ({ stops }) => {
      const kinds = stops.map(({ kind }) => kind).join();
      if (kinds !== stood.at(-1)) stood.push(kinds);
    };
    const session = await carryOn(world, run, {
      lanes: 1,
      maxCredits: credits(4),
      overdueWaitMs: 3_600_000,
      retries: 0,
    });
    expect(await states(world, run)).toEqual({ bad: "failed", good: "archived", more: "planned" });
    expect(stood).toEqual(["", "cap", "", "cap"]);
    expect(session.gate.stops.map(({ kind }) => kind)).toEqual(["cap"]);
  });

  test("P7: of a balance that is to be kept nothing is spent for a request that turns out to have been free", async () => {
    await open({ taskMs: { min: 9_000_000, max: 9_000_000 } });
    const run = await start(world, [picture("slow", 1)]);
    await carryOn(world, run, { reads: true });
    await world.store.enroll(run.id, [picture("slow", 1), picture("lost", 2), picture("more", 3)]);
    const controller = new AbortController();
    world.tamper = async (request, pass) => {
      if (!request.startsWith("POST")) return pass();
      controller.abort();
      return { kind: "no_answer", reason: "other side closed" };
    };
    await carryOn(world, run, { lanes: 1, interrupt: controller.signal });
    expect(await states(world, run)).toMatchObject({ lost: "unknown", more: "planned" });

    // The balance never fell for the lost one, so there is nothing that could be given back.
    world.tamper = null;
    const before = posts();
    const keep = keeping(credits(496), credits(496), await markNow(world));
    await carryOn(world, run, { lanes: 1, overdueWaitMs: 3_600_000, keep });
    expect(await states(world, run)).toMatchObject({ lost: "planned", more: "planned" });
    expect(posts()).toBe(before);
  });

  test("overdue tasks are awaited from when the last request was answered", async () => {
    await open({ taskMs: { min: 90_000_000, max: 90_000_000 } });
    const run = await start(world, [picture("slow", 1)]);
    await carryOn(world, run, { reads: true });
    await world.store.enroll(run.id, [picture("slow", 1), picture("lost", 2)]);
    let answeredAt = Number.POSITIVE_INFINITY;
    world.tamper = async (request, pass) => {
      if (!request.startsWith("POST")) return pass();
      // Meanwhile the overdue task is looked at.
      const { length } = world.sent;
      while (world.sent.length === length) {
        world.clock.advance(60_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
      answeredAt = world.clock.now();
      return { kind: "answer", status: 400, headers: {}, body: "{}" };
    };
    await carryOn(world, run, { lanes: 1, overdueWaitMs: 120_000 });
    expect(await states(world, run)).toEqual({ slow: "overdue", lost: "failed" });
    expect(world.clock.now() - answeredAt).toBeGreaterThanOrEqual(120_000);
  });

  test("overdue tasks are not awaited longer because items wait behind a cap", async () => {
    await open({ taskMs: { min: 9_000_000, max: 9_000_000 } });
    const run = await start(world, pictures(2));
    const began = world.clock.now();
    await carryOn(world, run, { maxCredits: credits(4), overdueWaitMs: 1_800_000 });
    expect(Object.values(await states(world, run)).toSorted()).toEqual(["overdue", "planned"]);
    expect(world.clock.now() - began).toBeLessThan(600_000 + 2 * 1_800_000);
  });

  test("overdue tasks that take longer than was asked are left for a later resume", async () => {
    await open({ taskMs: { min: 9_000_000, max: 9_000_000 } });
    const run = await start(world, pictures(1));
    const began = world.clock.now();
    await carryOn(world, run, { overdueWaitMs: 1_800_000 });
    expect(await states(world, run)).toEqual({ p1: "overdue" });
    expect(world.clock.now() - began).toBeGreaterThanOrEqual(600_000 + 1_800_000);
  });
});

/** Interrupts the run once the condition holds and a moment has passed. */
function setWatch(condition: () => boolean, interrupt: AbortController): () => void {
  let over = false;
  const look = () => {
    if (over) return;
    if (condition() && posts() > 4) interrupt.abort();
    setImmediate(look);
  };
  setImmediate(look);
  return () => {
    over = true;
  };
}

describe("prices", () => {
  test("the charge of a group is remembered once, and again when it was higher", async () => {
    world = await openWorld();
    const run = await start(world, pictures(4));
    const told: number[] = [];
    const { charged } = world.accounts;
    world.accounts.charged = (account, group, amount) => {
      told.push(amount);
      return charged(account, group, amount);
    };
    const { prices } = (await carryOn(world, run)).gate;
    expect(told).toEqual([credits(4)]);
    const dearer = [credits(5), credits(5), credits(4), credits(6)];
    expect(dearer.map((amount) => prices.charged({ ...picture("p1", 1), id: 1 }, amount))).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  const items = () => [
    ...["a", "b", "c"].map((id, index) => picture(id, index, { price: credits(2) })),
    ...["d", "e"].map((id, index) => picture(id, index + 3, { params: { aspect_ratio: "16:9" } })),
  ];

  test("P7: a price above the plan costs its surplus once, stops its group and no other, and is remembered", async () => {
    await open();
    const run = await start(world, items());
    const session = await carryOn(world, run, { lanes: 2 });
    expect(await states(world, run)).toEqual({
      a: "archived",
      b: "planned",
      c: "planned",
      d: "archived",
      e: "archived",
    });
    expect(session.gate.prices.messages([])).toEqual([
      expect.stringContaining("was planned at 2 credits and charged 4 (a)"),
    ]);
    const account = await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    const learned = await world.accounts.highestCharges(account.id);
    expect([...learned.values()]).toEqual([credits(4), credits(4)]);
  });

  /** The account's very first requests go one by one. */
  const answeredBefore = async (requests: number) => {
    const key = fingerprint(world.sandbox.key);
    const { id } = await world.accounts.accountOf("sandbox", key);
    for (let n = 0; n < requests; n++) {
      const { ticket } = await world.accounts.reserve({ accountId: id, fingerprint: key }, "me");
      if (ticket) await world.accounts.answered(ticket);
    }
  };

  test("P7: the first request of a group goes alone, the rest follow when its price is right", async () => {
    await open();
    const run = await start(world, pictures(4));
    const inFlight: number[] = [];
    let flying = 0;
    let third = () => {};
    const thirdCame = new Promise<void>((resolve) => {
      third = resolve;
    });
    world.tamper = async (request, pass) => {
      if (!request.startsWith("POST")) return pass();
      inFlight.push(++flying);
      if (inFlight.length === 3) third();
      // The second waits for the third: they go together, or this never ends.
      if (inFlight.length === 2) await thirdCame;
      const reply = await pass();
      flying--;
      return reply;
    };
    await answeredBefore(3);
    await carryOn(world, run, { lanes: 2 });
    expect(inFlight.slice(0, 3)).toEqual([1, 1, 2]);
  });

  test("a first request that was refused leaves its group to be tried again", async () => {
    await open();
    const run = await start(world, pictures(2));
    let refusals = 1;
    world.tamper = async (request, pass) =>
      request.startsWith("POST") && refusals-- > 0
        ? { kind: "answer", status: 429, headers: { "retry-after": "1" }, body: "" }
        : pass();
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived" });
  });
});

describe("the day's requests", () => {
  test("P12: what is bought is collected today, and what cannot be collected is not bought", async () => {
    await open();
    const run = await start(world, pictures(3));
    const session = await carryOn(world, run, { perDay: 5 });
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["reserve"]);
    expect(session.gate.stops[0]?.message).toContain("new requests from 2026-01-02 00:00 UTC");
    const found = Object.values(await states(world, run)).toSorted();
    expect(found).toEqual(["archived", "archived", "planned"]);
    expect(world.sent).toHaveLength(4);
  });

  test("a day that is used up with tasks still open ends the run and says until when", async () => {
    await open({ taskMs: { min: 30_000, max: 30_000 } });
    const run = await start(world, pictures(1));
    const session = await carryOn(world, run, { perDay: 3 });
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["day"]);
    expect(await states(world, run)).toEqual({ p1: "processing" });
    world.clock.advance(86_400_000);
    await carryOn(world, run, { perDay: 3 });
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(posts()).toBe(1);
  });

  test("a run that waits for the day sees within a quarter of an hour that the plan allows more", async () => {
    world = await openWorld();
    const run = await start(world, pictures(8));
    let until: number | null = null;
    world.onProgress = (progress) => {
      if (progress.reason?.kind !== "reserve" || until !== null) return;
      until = world.clock.now() + 15 * 60_000;
      world.clock.alarm(world.clock.now() + 5 * 60_000, () => {
        void world.accounts
          .accountOf("sandbox", fingerprint(world.sandbox.key))
          .then(({ id }) => world.accounts.setLimits(id, { perMinute: 60, perDay: 500 }));
      });
    };
    await carryOn(world, run, { perDay: 10, onDailyLimit: "wait" });
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(until).not.toBeNull();
    expect(world.clock.now()).toBeLessThan((until ?? 0) + 60_000);
  });

  test("how many requests it made is saved at first, each minute, before a longer sleep, and at its end", async () => {
    world = await openWorld({ taskMs: { min: 200_000, max: 200_000 } });
    const run = await start(world, pictures(6));
    const began = world.clock.now();
    const saved: { requests: number; at: number }[] = [];
    const { setRun } = world.store;
    world.store.setRun = (id, change) => {
      if (change.requests !== undefined) saved.push({ requests: change.requests, at: world.clock.now() });
      return setRun(id, change);
    };
    const session = await carryOn(world, run);
    expect(saved.at(-1)).toEqual({ requests: session.gate.requests, at: world.clock.now() });
    const times = (world.clock.now() - began) / 60_000;
    expect(saved[0]?.requests).toBeLessThan(10);
    expect(session.gate.requests).toBeGreaterThan(20);
    expect(saved.length).toBeGreaterThan(4);
    expect(saved.length).toBeLessThan(times + 2);
  });

  test("with --on-daily-limit wait the run continues when the day has requests again", async () => {
    await open();
    const run = await start(world, pictures(3));
    const session = await carryOn(world, run, { perDay: 5, onDailyLimit: "wait" });
    expect(session.gate.stops).toEqual([]);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
  });
});

describe("P11: a service that answers 429", () => {
  const refusal = (headers: Record<string, string>): Reply => ({
    kind: "answer",
    status: 429,
    headers,
    body: JSON.stringify({ error: { code: "RATE_LIMITED", message: "Slow down." } }),
  });

  test("that asks for three days of silence ends the run, says until when, and nothing is lost", async () => {
    await open();
    const run = await start(world, pictures(3));
    world.tamper = (request, pass) =>
      request.startsWith("GET") ? Promise.resolve(refusal({ "retry-after": "259200" })) : pass();
    const before = world.clock.now();
    const session = await carryOn(world, run);
    expect(session.gate.stops.map((stop) => stop.message)).toEqual([
      "the service asks for no more requests until 2026-01-02 00:00 UTC (`bulkgen account --forget-pause` asks it again now)",
    ]);
    expect(world.clock.now() - before).toBeLessThan(60_000);
    expect(posts()).toBe(3);
    world.tamper = null;
    world.clock.advance(3 * 86_400_000);
    await carryOn(world, run);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(posts()).toBe(3);
  });

  test.each([{}, { "retry-after": "1" }, { "retry-after": "-5" }, { "retry-after": "soon" }])(
    "for ever (%j) is asked less and less, and after a while the run ends",
    async (headers) => {
      await open();
      const run = await start(world, pictures(2));
      world.tamper = () => Promise.resolve(refusal(headers as Record<string, string>));
      const session = await carryOn(world, run);
      expect(session.gate.stops.map((stop) => stop.kind)).toEqual(["silence"]);
      expect(world.sent.length).toBeLessThanOrEqual(10);
      expect(await states(world, run)).toEqual({ p1: "planned", p2: "planned" });
    },
  );

  test("is waited out where that was asked for", async () => {
    await open();
    const run = await start(world, pictures(2));
    world.tamper = (_, pass) =>
      world.sent.length <= 2 ? Promise.resolve(refusal({ "retry-after": "259200" })) : pass();
    const session = await carryOn(world, run, { onDailyLimit: "wait" });
    expect(session.gate.stops).toEqual([]);
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived" });
  });
});

describe("files", () => {
  test("P13: saved files that are gone before the run ends are fetched again, and nothing is paid for them", async () => {
    await open({ switches: { outputs: { number: 2 } } });
    const run = await start(world, pictures(3));
    const folder = join(world.folder, "outputs", "demo");
    let begun = 0;
    // One at a time: two outputs of the first item are there, and one of the second.
    world.onDownload = () => {
      if (++begun === 4) rmSync(folder, { recursive: true });
    };
    await carryOn(world, run, { downloads: 1 });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived", p3: "archived" });
    const files = ["p1-1", "p1-2", "p2-1", "p2-2", "p3-1", "p3-2"].map((name) => join(folder, `${name}.png`));
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
    expect(begun).toBe(9);
    expect(posts()).toBe(3);
  });

  test("that another program takes away as soon as they are saved are fetched again once, and the run ends", async () => {
    await open();
    const run = await start(world, pictures(3));
    const folder = join(world.folder, "outputs", "demo");
    let begun = 0;
    const isTaken = (name: string) => name.endsWith(".png");
    world.onProgress = () => {
      if (!existsSync(folder) || begun > 12) return;
      for (const name of readdirSync(folder).filter(isTaken)) rmSync(join(folder, name));
    };
    world.onDownload = () => ++begun;
    await carryOn(world, run);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(begun).toBe(6);
  });

  test("are downloaded as many at once as may be, with more at hand", async () => {
    await open();
    const run = await start(world, pictures(12));
    const atOnce: number[] = [];
    world.onDownload = (downloads) => atOnce.push(downloads);
    await carryOn(world, run, { lanes: 12, downloads: 2 });
    expect(Math.max(...atOnce)).toBe(2);
    expect(atOnce).toHaveLength(12);
  });

  test("are left where they are when the run is paused before their download began", async () => {
    await open();
    const run = await start(world, pictures(6));
    let begun = 0;
    world.onDownload = async () => {
      begun++;
      await world.pass(60_000);
    };
    const attend: RunChange["attend"] = ({ gate }) => {
      if (begun === 2 && (world.progress.at(-1)?.counts.ready ?? 0) >= 4)
        gate.stop("paused", "the run was paused");
    };
    const { gate } = await carryOn(world, run, { downloads: 2, attend });
    expect(gate.stopped("paused")).toBe(true);
    expect(begun).toBe(2);
    expect(Object.values(await states(world, run)).filter((state) => state === "archived")).toHaveLength(2);
  });

  test("are left where they are when the run is interrupted before their download began", async () => {
    await open();
    const run = await start(world, pictures(6));
    const interrupt = new AbortController();
    let begun = 0;
    world.onDownload = async () => {
      begun++;
      await world.pass(60_000);
      interrupt.abort();
    };
    await carryOn(world, run, { downloads: 2, interrupt: interrupt.signal });
    expect(begun).toBe(2);
    expect(Object.values(await states(world, run)).filter((state) => state === "ready")).toHaveLength(4);
    world.onDownload = null;
    await carryOn(world, run, {});
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(posts()).toBe(6);
  });
});
