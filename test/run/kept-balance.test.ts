import { afterEach, beforeEach, expect, test } from "vitest";
import { fingerprint } from "../../src/api/key.js";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { credits, noCredits } from "../../src/core/money.js";
import type { Run } from "../../src/core/ports/store.js";
import { keeping } from "../../src/run/gate/caps.js";
import { carryOn, markNow, openWorld, picture, start, states, type World } from "./harness.js";

/** A balance of which some must be left, over a request that got no answer. The sandbox's account begins with 500. */
let world: World;
let run: Run;
beforeEach(async () => {
  world = await openWorld();
  run = await start(world, [picture("first", 0)]);
  // What the key's counters mean is known from what was charged.
  await carryOn(world, run, { reads: true });
  await world.store.enroll(run.id, [picture("first", 0), picture("lost", 1)]);
});
afterEach(() => world.close());

const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;

/** The answer of the request gets lost, and the process ends; where it `arrives` the service has charged it. */
async function lose(arrives: boolean): Promise<void> {
  const interrupted = new AbortController();
  world.tamper = async (request, pass) => {
    if (!request.startsWith("POST")) return pass();
    if (arrives) await pass();
    interrupted.abort();
    return { kind: "no_answer", reason: "other side closed" };
  };
  await carryOn(world, run, { interrupt: interrupted.signal });
  world.tamper = null;
}

/** Goes on until the request is settled, with `least` to be left of a balance. */
async function goOn(balance: number, least: number): Promise<void> {
  const keep = keeping(credits(least), credits(balance), await markNow(world));
  const settling = { ...defaultReconcile, unsettledMax: 5, wait: true, orphanCredits: noCredits };
  await carryOn(world, run, { lanes: 1, keep, settling });
}

test("P7: what turns out to have been free may be spent in the same run", async () => {
  await lose(false);
  await goOn(496, 492);
  expect(await states(world, run)).toEqual({ first: "archived", lost: "archived" });
  expect(posts()).toBe(3);
});

test("P7: what turns out to have been charged is gone from the balance once, and not twice", async () => {
  await lose(true);
  await world.store.enroll(run.id, [picture("first", 0), picture("lost", 1), picture("more", 2)]);
  await goOn(492, 488);
  expect(await states(world, run)).toEqual({ first: "archived", lost: "held", more: "archived" });
});

test("P7: what seems to be used up is read once more, and what is there after all is spent", async () => {
  const { accounts, sandbox, store } = world;
  const owner = { origin: "sandbox", fingerprint: fingerprint(sandbox.key), workspace: "another" };
  const others = accounts.spendLog(owner);
  const inFlight = await others.intend({ itemKey: "k", price: credits(4), at: world.clock.monotonic() });
  // It was charged by the time of the reading, but nobody here knows that.
  const keep = keeping(credits(488), credits(496), await markNow(world));
  await others.answered(inFlight, { outcome: "accepted", charged: credits(4) });
  const items = ["first", "lost", "more", "last"].map((id, position) => picture(id, position));
  await store.enroll(run.id, items);
  world.sent.length = 0;
  const session = await carryOn(world, run, { lanes: 1, keep });
  expect(await states(world, run)).toMatchObject({ lost: "archived", more: "archived", last: "planned" });
  expect(session.gate.stops.map(({ kind }) => kind)).toEqual(["keep"]);
  expect(world.sent.filter((request) => request.endsWith("/me"))).toHaveLength(2);
});
