import { afterEach, describe, expect, test } from "vitest";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;

afterEach(() => world.close());

/** Answers to these requests come with these fields. */
function tells(which: string, fields: object): void {
  world.tamper = async (request, pass) => {
    const reply = await pass();
    if (!request.includes(which) || reply.kind !== "answer") return reply;
    return { ...reply, body: JSON.stringify({ ...JSON.parse(reply.body), ...fields }) };
  };
}

describe("a finished task", () => {
  test.each([
    { completed_at: 0 },
    { completed_at: {} },
    { created_at: 1e300 },
    { created_at: [], completed_at: "soon" },
    { credits_consumed: {} },
  ])("is collected though it has %j", async (fields) => {
    world = await openWorld();
    const run = await start(world, [picture("p1", 1)]);
    tells("/task/", fields);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
    expect(world.sent.filter((request) => request.includes("/task/")).length).toBe(1);
  });

  test("is collected though its record has NaN where JSON has no number", async () => {
    world = await openWorld();
    const run = await start(world, [picture("p1", 1)]);
    world.tamper = async (request, pass) => {
      const reply = await pass();
      if (!request.includes("/task/") || reply.kind !== "answer") return reply;
      return { ...reply, body: reply.body.replace(/"credits_consumed":\d+/, '"credits_consumed": NaN') };
    };
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived" });
  });
});

describe("a task id of ten megabytes", () => {
  test("is no id: the item is held with what was odd as evidence, and never sent again", async () => {
    world = await openWorld();
    const run = await start(world, [picture("p1", 1)]);
    tells("/generate", { task_id: "x".repeat(10_000_000) });
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "held" });
    const [item] = await world.store.items(run.id);
    const [attempt] = await world.store.orphans({ item: item?.id ?? 0 });
    expect(attempt?.message).toContain("without a readable task_id: it has 10000000 characters");
    expect(world.sent.filter((request) => request.startsWith("POST")).length).toBe(1);
  });
});

describe("an output that is not what was promised", () => {
  test("is held when the same bytes come a second time, and not fetched for minutes", async () => {
    const faults = { rules: [{ fault: { kind: "download-corrupt" as const }, rate: 1 }] };
    world = await openWorld({ faults });
    const run = await start(world, [picture("p1", 1)]);
    const began = world.clock.now();
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "held" });
    const [item] = await world.store.items(run.id);
    expect(item?.note).toMatch(/^the same bytes came twice: .*\(kept as _quarantine\//);
    expect(world.clock.now() - began).toBeLessThan(20_000);
  });
});
