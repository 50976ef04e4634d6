import { afterEach, describe, expect, test } from "vitest";
import { fingerprint } from "../../src/api/key.js";
import { priceGroup } from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import type { Run } from "../../src/core/ports/store.js";
import { Prices } from "../../src/run/gate/prices.js";
import type { Session } from "../../src/run/ports.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;

afterEach(() => world?.close());

const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;
const group = priceGroup(picture("a", 1));

/** The service charges 7 for what it lists, and what was planned, at 4. */
async function openDear(): Promise<void> {
  world = await openWorld({ switches: { price: { factor: 7 / 4 } } });
}

async function told(session: Session, run: Run): Promise<string[]> {
  const groups = await world.store.groups(run.id);
  return session.gate.prices.messages(groups.filter(({ planned }) => planned > 0));
}

const pictures = (count: number) => Array.from({ length: count }, (_, at) => picture(`p${at + 1}`, at + 1));

describe("a price above the plan", () => {
  test("P7: is paid once, however often the run is continued, and stays named", async () => {
    await openDear();
    const run = await start(world, pictures(4));
    const first = await carryOn(world, run, { lanes: 1 });
    expect(await told(first, run)).toEqual([
      expect.stringContaining("aurora-image was planned at 4 credits and charged 7 (p1)"),
    ]);
    for (let times = 0; times < 2; times++) {
      const session = await carryOn(world, run, { lanes: 1, maxCredits: credits(12) });
      expect(session.gate.stops).toEqual([]);
      expect(await told(session, run)).toEqual([
        expect.stringContaining("aurora-image is planned at 4 credits and was charged 7 before"),
      ]);
    }
    expect(posts()).toBe(1);
    expect(await world.store.spending(run.id)).toMatchObject({ charged: credits(7) });
    expect(await states(world, run)).toMatchObject({ p1: "archived", p2: "planned" });
  });

  test("P7: keeps back an item that was chosen before the price was known, while its inputs were fetched", () => {
    const item = (id: number, price = credits(4)) => ({ ...picture(`p${id}`, id), id, price });
    const first = () => {
      const prices = new Prices();
      expect(prices.trying(item(1))).toBe(true);
      return prices;
    };
    expect(first().trying(item(2))).toBe(false);
    const proven = first();
    proven.charged(item(1), credits(4));
    expect(proven.trying(item(2))).toBe(true);
    const refused = first();
    refused.refused(item(1));
    expect(refused.trying(item(2))).toBe(true);
    const dear = first();
    dear.charged(item(1), credits(7));
    expect(dear.trying(item(2))).toBe(false);
    expect(dear.trying(item(3, credits(7)))).toBe(true);
  });

  test("P7: is known to the next process though a crash came before it was remembered", async () => {
    await openDear();
    const run = await start(world, pictures(3));
    const { charged } = world.accounts;
    world.accounts.charged = () => Promise.reject(new Error("the process ends here"));
    await expect(carryOn(world, run, { lanes: 1 })).rejects.toThrow("the process ends here");
    world.accounts.charged = charged;
    await carryOn(world, run, { lanes: 1 });
    expect(posts()).toBe(1);
    const account = await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    expect(await world.accounts.highestCharges(account.id)).toEqual(new Map([[group, credits(7)]]));
  });

  test("P7: is known to the next process of another job too", async () => {
    await openDear();
    const first = await start(world, pictures(1), "first");
    const { charged } = world.accounts;
    world.accounts.charged = () => Promise.reject(new Error("the process ends here"));
    await expect(carryOn(world, first, { lanes: 1 })).rejects.toThrow("the process ends here");
    world.accounts.charged = charged;
    const second = await start(world, [picture("q1", 1), picture("q2", 2)], "second");
    const session = await carryOn(world, second, { lanes: 1 });
    expect(posts()).toBe(1);
    expect(await told(session, second)).toEqual([
      expect.stringContaining("aurora-image is planned at 4 credits and was charged 7 before"),
    ]);
  });

  test("P7: is that of its own service alone", async () => {
    await openDear();
    const first = await start(world, pictures(1), "first");
    const { charged } = world.accounts;
    world.accounts.charged = () => Promise.resolve();
    await carryOn(world, first, { lanes: 1 });
    world.accounts.charged = charged;
    const other = await start(world, [picture("q1", 1)], "second", "https://another.example");
    expect(await world.store.groups(other.id)).toMatchObject([{ group, charged: null }]);
  });

  test("P7: is bought once a person has agreed to it, within the cap", async () => {
    await openDear();
    const run = await start(world, pictures(3));
    await carryOn(world, run, { lanes: 1 });
    const agreed = pictures(3).map((item) => ({ ...item, price: credits(7) }));
    await world.store.enroll(run.id, agreed);
    const { stops } = (await carryOn(world, run, { lanes: 1, maxCredits: credits(20) })).gate;
    expect(stops.map(({ kind }) => kind)).toEqual(["cap"]);
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived", p3: "planned" });
  });

  test("P7: lets what was agreed to go on beside what was not", async () => {
    await openDear();
    const run = await start(world, pictures(3));
    await carryOn(world, run, { lanes: 1 });
    await world.store.add(run.id, [picture("p1-v2", 4, { price: credits(7) })]);
    await carryOn(world, run, { lanes: 1 });
    expect(await states(world, run)).toMatchObject({ p2: "planned", p3: "planned", "p1-v2": "archived" });
    expect(posts()).toBe(2);
  });

  test("P7: that another run of the account was charged is not paid by this one", async () => {
    world = await openWorld();
    const run = await start(world, [
      ...pictures(2),
      picture("wide", 3, { params: { aspect_ratio: "16:9" } }),
    ]);
    const account = await world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));
    await world.accounts.charged(account.id, group, credits(7));
    await carryOn(world, run, { lanes: 1 });
    expect(await states(world, run)).toEqual({ p1: "planned", p2: "planned", wide: "archived" });
  });
});

describe("a charge that only a poll of the task shows", () => {
  const paid = "POST /api/v1/generate";

  /** Answers to paid requests do not say what was charged, nor do looks where they are to be as silent. */
  async function tellsNoCharge(options: Parameters<typeof openWorld>[0], looks: "tell" | "too" = "tell") {
    world = await openWorld(options);
    world.tamper = async (request, pass) => {
      const reply = await pass();
      const isSilent = request === paid || (looks === "too" && request.includes("/task/"));
      if (!isSilent || reply.kind !== "answer") return reply;
      const { credits_consumed: _, ...body } = JSON.parse(reply.body);
      return { ...reply, body: JSON.stringify(body) };
    };
  }

  test("P7: above the plan, is paid once, and stays named over resumes", async () => {
    await tellsNoCharge({ switches: { price: { factor: 7 / 4 } } });
    const run = await start(world, pictures(4));
    const first = await carryOn(world, run);
    expect(posts()).toBe(1);
    expect(await told(first, run)).toEqual([
      expect.stringContaining("aurora-image was planned at 4 credits and charged 7 (p1)"),
    ]);
    world.tamper = null;
    expect(await told(await carryOn(world, run), run)).toEqual([
      expect.stringContaining("was charged 7 before"),
    ]);
    expect(posts()).toBe(1);
  });

  test("P7: as planned, releases all the others once it is known", async () => {
    await tellsNoCharge({});
    const run = await start(world, pictures(4));
    await carryOn(world, run);
    const order = world.sent.filter((request) => request === paid || request.includes("/task/"));
    expect(order.slice(0, 4)).toEqual([paid, expect.stringContaining("/task/"), paid, paid]);
    expect(Object.values(await states(world, run))).toEqual(Array(4).fill("archived"));
  });

  test("that stays unknown delays others no longer than its task", async () => {
    await tellsNoCharge({}, "too");
    const run = await start(world, pictures(3));
    await carryOn(world, run);
    expect(Object.values(await states(world, run))).toEqual(Array(3).fill("archived"));
  });

  test("that stays unknown because its task is overdue does not delay others forever", async () => {
    await tellsNoCharge({ taskMs: { min: 90_000_000, max: 90_000_000 } });
    const run = await start(world, pictures(3));
    await carryOn(world, run);
    expect(Object.values(await states(world, run))).toEqual(Array(3).fill("overdue"));
  });

  test("P7: that stays unknown because its task failed is learned from the next task", async () => {
    await tellsNoCharge({ switches: { price: { factor: 7 / 4 } } });
    const run = await start(world, pictures(3));
    const { tamper } = world;
    world.tamper = async (request, pass) => {
      const reply = (await tamper?.(request, pass)) ?? (await pass());
      if (!request.includes("/task/") || posts() > 1 || reply.kind !== "answer") return reply;
      const failed = { status: "failed", error: "no", output_urls: null, credits_consumed: 0 };
      return { ...reply, body: JSON.stringify({ ...JSON.parse(reply.body), ...failed }) };
    };
    await carryOn(world, run, { retries: 0 });
    expect(await states(world, run)).toEqual({ p1: "failed", p2: "archived", p3: "planned" });
  });

  test("P7: of a task that a person adopted is learned", async () => {
    await openDear();
    const run = await start(world, pictures(1));
    let task = "";
    world.tamper = async (request, pass) => {
      const reply = await pass();
      if (request !== paid || reply.kind !== "answer") return reply;
      task = JSON.parse(reply.body).task_id;
      return { kind: "no_answer", reason: "other side closed" };
    };
    await carryOn(world, run, { lanes: 1 });
    expect(posts()).toBe(1);
    world.tamper = null;
    const [held] = (await world.store.items(run.id)).filter(({ state }) => state === "held");
    const attempt = (await world.store.attempt(held?.id ?? 0))?.id ?? 0;
    await world.store.adopt(held?.id ?? 0, { taskId: task, charged: credits(4), attempt });
    await carryOn(world, run, { lanes: 1 });
    await world.store.enroll(run.id, pictures(3));
    await carryOn(world, run, { lanes: 1 });
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "planned", p3: "planned" });
    expect(posts()).toBe(1);
  });
});

describe("prices of a run", () => {
  const item = (price: number) => ({ group, price: credits(price) });

  test("what comes in below a charge that is known is not allowed, and stopped from then on", () => {
    const prices = new Prices();
    prices.recall(item(4), undefined);
    prices.charged({ ...picture("a", 1), id: 1 }, credits(7));
    expect(prices.stopped).toEqual([item(4)]);
    expect(prices.allowed([item(6), item(7)])).toEqual([item(7)]);
    expect(prices.stopped).toEqual([item(4), item(6)]);
  });

  test("the first at an agreed price goes alone again", () => {
    const prices = new Prices();
    prices.recall(item(7), credits(7));
    expect(prices.allowed([item(7), item(7)])).toEqual([item(7)]);
    prices.charged({ ...picture("a", 1, { price: credits(7) }), id: 1 }, credits(7));
    expect(prices.allowed([item(7), item(7)])).toHaveLength(2);
    prices.charged({ ...picture("a", 1, { price: credits(7) }), id: 1 }, credits(8));
    expect(prices.allowed([item(7), item(8), item(8)])).toEqual([item(8)]);
  });
});
