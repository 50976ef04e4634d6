import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

/** A cap of the day over runs of an account, between which the clock is set. A picture costs four credits. */
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const cut: Reply = { kind: "no_answer", reason: "other side closed" };
let world: World;
let runs = 0;

beforeEach(async () => {
  world = await openWorld();
  // Noon, wherever this is run.
  world.clock.advance(new Date(world.clock.now()).setHours(36, 0, 0, 0) - world.clock.now());
});
afterEach(() => world.close());

/** The pictures that a new run of three gets within twelve credits a day. */
async function pictures(most = 12): Promise<number> {
  const name = `job-${++runs}`;
  const items = [1, 2, 3].map((number) => picture(`${name}-${number}`, number));
  const run = await start(world, items, name);
  await carryOn(world, run, { reads: true, dailyCredits: credits(most) });
  return Object.values(await states(world, run)).filter((state) => state === "archived").length;
}

describe.each([
  ["ahead", 3_650 * dayMs],
  ["back", -3_650 * dayMs],
])("P7, P20: the day's cap while the clock is put %s by ten years, and afterwards", (_, byMs) => {
  test("counts all that was spent on this day, and starts again with the next", async () => {
    expect(await pictures(4)).toBe(1);
    world.clock.advance(hourMs);
    world.clock.set(byMs);
    expect(await pictures(8)).toBe(1);
    expect(await pictures(8)).toBe(0);
    world.clock.advance(hourMs);
    world.clock.set(-byMs);
    expect(await pictures(8)).toBe(0);
    expect(await pictures(12)).toBe(1);
    for (let day = 1; day <= 2; day++) {
      world.clock.advance(dayMs);
      expect(await pictures()).toBe(3);
      expect(await pictures()).toBe(0);
    }
  });

  test("holds if the clock is set while a paid request is in flight", async () => {
    world.tamper = async (request, pass) => {
      if (!request.startsWith("POST")) return pass();
      world.tamper = null;
      world.clock.set(byMs);
      return pass();
    };
    expect(await pictures()).toBe(3);
    world.clock.set(-byMs);
    expect(await pictures()).toBe(0);
    world.clock.advance(dayMs);
    expect(await pictures()).toBe(3);
  });

  test("holds where the first request after the clock was set gets no answer", async () => {
    world.onProgress = () => {
      world.onProgress = null;
      world.clock.set(byMs);
    };
    world.tamper = async (request, pass) => (request.startsWith("POST") ? cut : pass());
    expect(await pictures(4)).toBe(0);
    expect(world.sent.filter((request) => request.startsWith("POST"))).toHaveLength(1);
    world.tamper = null;
    world.clock.set(-byMs);
    expect(await pictures(4)).toBe(0);
    expect(await pictures(8)).toBe(1);
  });
});
