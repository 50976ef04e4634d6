import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

const minuteMs = 60_000;
const cut: Reply = { kind: "no_answer", reason: "other side closed" };
let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

/** A run whose second picture is submitted two hours after the first one was archived. */
async function longRun(): Promise<Run> {
  const run = await start(world, [picture("a", 1), picture("b", 2)]);
  const [, second] = await world.store.items(run.id);
  await world.store.reschedule(second?.id ?? 0, world.clock.now() + minuteMs);
  world.onProgress = ({ counts }) => {
    if (counts.archived === 0) return;
    world.onProgress = null;
    world.clock.advance(120 * minuteMs);
  };
  return run;
}

/**
 * The second POST is given up while the clock is wrong by so much, which is right again before anything else is asked.
 * It arrives three minutes later, and before any other POST.
 */
function loseSecond(byMs: number): void {
  let posts = 0;
  let late: (() => Promise<Reply>) | null = null;
  let lostAt = 0;
  let isWrong = false;
  world.tamper = async (request, pass) => {
    if (request.startsWith("POST") && ++posts === 2) {
      late = pass;
      lostAt = world.clock.monotonic();
      isWrong = true;
      world.clock.set(byMs);
      return cut;
    }
    if (isWrong) world.clock.set(-byMs);
    isWrong = false;
    if (posts > 2 || world.clock.monotonic() - lostAt > 3 * minuteMs) {
      const arrive = late;
      late = null;
      await arrive?.();
    }
    return pass();
  };
}

describe.each([
  ["right", 0],
  ["an hour back", -60 * minuteMs],
])("a request that arrives late, given up in a long run while the clock was %s", (_, byMs) => {
  test("P2, P20: is not paid twice", async () => {
    const run = await longRun();
    loseSecond(byMs);
    const settling = { ...defaultReconcile, unsettledMax: 5, wait: true, orphanCredits: noCredits };
    await carryOn(world, run, { lanes: 1, reads: true, settling });
    expect(world.sent.filter((request) => request.startsWith("POST"))).toHaveLength(2);
    expect(await states(world, run)).toEqual({ a: "archived", b: "held" });
  });
});
