import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fingerprint } from "../../src/api/key.js";
import type { Task } from "../../src/api/records.js";
import { type Credits, credits, noCredits } from "../../src/core/money.js";
import type { Attempt } from "../../src/core/ports/attempt.js";
import type { Item } from "../../src/core/ports/store.js";
import { mismatches } from "../../src/job/orders/resolve.js";
import { carryOn, markNow, openWorld, picture, start, type World } from "./harness.js";

const dayMs = 24 * 3_600_000;
const years = 3_650 * dayMs;
let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

/** What earlier requests may yet take from a balance that is read now. */
async function inDoubt(): Promise<Credits> {
  const { accounts, sandbox } = world;
  const { id } = await accounts.accountOf("sandbox", fingerprint(sandbox.key));
  return (await accounts.takenFrom(id, await markNow(world))).before;
}

/** A picture whose answer never comes, asked for while the clock is put by so much. */
async function lost(byMs: number): Promise<{ item: Item; attempt: Attempt }> {
  const run = await start(world, [picture("lost", 1)]);
  const interrupted = new AbortController();
  world.tamper = async (request, pass) => {
    if (!request.startsWith("POST")) return pass();
    interrupted.abort();
    return { kind: "no_answer", reason: "other side closed" };
  };
  world.clock.set(byMs);
  await carryOn(world, run, { reads: true, interrupt: interrupted.signal });
  const [item] = await world.store.items(run.id);
  const attempt = await world.store.attempt(item?.id ?? 0);
  if (!item || !attempt) throw new Error("nothing was asked for");
  return { item, attempt };
}

describe.each([
  ["right", 0, 0],
  ["ten years ahead, then put right", years, -years],
  ["ten years back, then put right", -years, years],
  ["right, then put ahead by ten years", 0, years],
  ["right, then put back by ten years", 0, -years],
])("a request without an answer that was sent while the clock was %s", (_, before, after) => {
  test("P7, P20: may take from the balance for a day, by the service's time", async () => {
    await lost(before);
    world.clock.set(after);
    expect(await inDoubt()).toBe(credits(4));
    world.clock.advance(dayMs);
    expect(await inDoubt()).toBe(noCredits);
  });

  test("P6, P20: is matched with the task that the service made then, not with one from a day before", async () => {
    const { item, attempt } = await lost(before);
    world.clock.set(after);
    const task = (at: number) =>
      ({ model: item.model, input: {}, created_at: new Date(at).toISOString() }) as Task;
    // The service's clock is the one that nobody sets.
    const served = world.clock.monotonic();
    expect(mismatches(item, attempt, task(served))).toEqual([]);
    expect(mismatches(item, attempt, task(served - dayMs))).toHaveLength(1);
  });
});
