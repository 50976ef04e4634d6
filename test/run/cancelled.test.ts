import { afterEach, describe, expect, test } from "vitest";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;

afterEach(() => world.close());

const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;
const alone = { lanes: 1, reads: true };

/** The run as it is continued after it was cancelled. */
async function cancelled({ id }: Run): Promise<Run> {
  await world.store.cancelRun(id, new Set());
  return (await world.store.run(id)) as Run;
}

describe("a cancelled run that is continued", () => {
  test("P2: does not submit again what turns out to have been free", async () => {
    world = await openWorld();
    const run = await start(world, [picture("a", 1), picture("b", 2), picture("c", 3)]);
    const cut: Reply = { kind: "no_answer", reason: "other side closed" };
    world.tamper = async (request, pass) => (request.startsWith("POST") && posts() === 2 ? cut : pass());
    await carryOn(world, run, alone);
    expect(await states(world, run)).toMatchObject({ b: "unknown" });
    const over = await cancelled(run);
    world.clock.advance(20 * 60_000);
    const { stops } = (await carryOn(world, over, alone)).gate;
    expect(await states(world, run)).toMatchObject({ a: "archived", b: "planned", c: "archived" });
    expect(posts()).toBe(3);
    expect(stops).toEqual([
      { kind: "collect", message: "the run was cancelled; what was submitted before is collected" },
    ]);
  });

  test("P2: does not submit again what failed at the provider, and collects the rest", async () => {
    world = await openWorld();
    const failing = picture("a", 1, { prompt: "a [[provider-error]]" });
    const run = await start(world, [failing, picture("b", 2)]);
    const interrupt = new AbortController();
    world.tamper = async (_, pass) => {
      if (posts() === 2) interrupt.abort();
      return pass();
    };
    await carryOn(world, run, { ...alone, interrupt: interrupt.signal });
    expect(await states(world, run)).toEqual({ a: "processing", b: "processing" });
    await carryOn(world, await cancelled(run), alone);
    expect(await states(world, run)).toEqual({ a: "planned", b: "archived" });
    expect(posts()).toBe(2);
  });
});
