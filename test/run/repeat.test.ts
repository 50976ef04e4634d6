import { afterEach, describe, expect, test } from "vitest";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

/** A service that says that it gives a repeated request the same task. */

let world: World;
afterEach(() => world.close());

const lost: Reply = { kind: "no_answer", reason: "the connection was reset" };
/** Between two processes (ms). */
const restMs = 120_000;
const weekMs = 7 * 24 * 60 * 60_000;

/** What happens to the nth POST, from 1; it is passed on if nothing does. */
type Fate = (nth: number, pass: () => Promise<Reply>) => Promise<Reply>;

async function one(fate: Fate): Promise<Run> {
  world = await openWorld();
  let posts = 0;
  let task: Reply | null = null;
  const known = async (pass: () => Promise<Reply>) => {
    task ??= await pass();
    return task;
  };
  world.tamper = async (request, pass) => {
    if (request.startsWith("POST")) return fate(++posts, () => known(pass));
    const reply = await pass();
    if (!request.endsWith("/me") || reply.kind !== "answer") return reply;
    return { ...reply, body: JSON.stringify({ ...JSON.parse(reply.body), service: announcement }) };
  };
  return start(world, [picture("a", 0)]);
}

const announcement = { name: "known", idempotency_ms: weekMs };
const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;

describe("P5: a request without an answer is repeated, and its item never held", () => {
  test("by the next process too, although the key's counters say already that it was charged", async () => {
    const interrupt = new AbortController();
    const run = await one(async (nth, pass) => {
      const reply = await pass();
      if (nth > 1) return reply;
      interrupt.abort();
      return lost;
    });
    await carryOn(world, run, { reads: true, interrupt: interrupt.signal });
    expect(await states(world, run)).toEqual({ a: "unknown" });
    world.clock.advance(restMs);
    await carryOn(world, run, { reads: true });
    expect(await states(world, run)).toEqual({ a: "archived" });
    expect(posts()).toBe(2);
  });

  test("if the process ended before its receipt was written: the row has the same body", async () => {
    const run = await one((_, pass) => pass());
    const { intend } = world.store;
    world.store.intend = async (...values) => {
      await intend(...values);
      throw new Error("the power went");
    };
    await expect(carryOn(world, run, { reads: true })).rejects.toThrow("the power went");
    world.store.intend = intend;
    world.clock.advance(restMs);
    expect(posts()).toBe(0);
    await carryOn(world, run, { reads: true });
    expect(await states(world, run)).toEqual({ a: "archived" });
    expect(posts()).toBe(1);
  });

  test("however often the service is not reached meanwhile", async () => {
    const refused: Reply = { kind: "not_sent", reason: "connect ECONNREFUSED" };
    const run = await one(async (nth, pass) => {
      if (nth > 1 && nth < 16) return refused;
      const reply = await pass();
      return nth === 1 || nth === 16 ? lost : reply;
    });
    await carryOn(world, run, { reads: true, unreachableMs: 24 * 60 * 60_000 });
    expect(await states(world, run)).toEqual({ a: "archived" });
    expect(posts()).toBe(17);
  });
});
