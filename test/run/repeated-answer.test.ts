import { afterEach, describe, expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { Attempt } from "../../src/core/ports/attempt.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Item, Run } from "../../src/core/ports/store.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

/** Something between here and the service answers a paid request with what it has answered to an earlier one. */

let world: World;
afterEach(() => world.close());

const waits = {
  settling: { ...defaultReconcile, unsettledMax: 5, wait: true, orphanCredits: noCredits },
};
const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;

/** The second POST is given the answer to the first, whether it is passed on or not. */
function repeats({ passedOn }: { passedOn: boolean }): void {
  let first: Reply | null = null;
  world.tamper = async (request, pass) => {
    if (!request.startsWith("POST")) return pass();
    const isSecond = posts() === 2;
    if (first !== null && isSecond && !passedOn) return first;
    const reply = await pass();
    first ??= reply;
    return isSecond ? first : reply;
  };
}

async function three(): Promise<Run> {
  world = await openWorld();
  return start(world, [picture("a", 0), picture("b", 1), picture("c", 2)]);
}

async function named(run: Run, id: string): Promise<Item> {
  return (await world.store.items(run.id)).find(({ rowId }) => rowId === id) as Item;
}

async function attemptOf(run: Run, id: string): Promise<Attempt | null> {
  return world.store.attempt((await named(run, id)).id);
}

describe("an answer with the task of another request", () => {
  test("P5: is no answer: what was charged is held with whose task it is, and the others go on", async () => {
    const run = await three();
    repeats({ passedOn: true });
    for (let again = 0; again < 2; again++) await carryOn(world, run, { lanes: 1, reads: true });
    expect(await states(world, run)).toEqual({ a: "archived", b: "held", c: "archived" });
    const task = (await attemptOf(run, "a"))?.taskId;
    const repeated = `the answer names task ${task}, which is that of an earlier request (a)`;
    expect((await named(run, "b")).note).toContain(
      `charged, but its task id was lost (${repeated}); the service counts`,
    );
    expect(await attemptOf(run, "b")).toMatchObject({ taskId: null, charged: null, status: 200 });
    expect(posts()).toBe(3);
  });

  test("P2, P5: of a request that never arrived is found out, and the request sent again", async () => {
    const run = await three();
    repeats({ passedOn: false });
    await carryOn(world, run, { lanes: 1, reads: true, ...waits });
    expect(await states(world, run)).toEqual({ a: "archived", b: "archived", c: "archived" });
    expect(posts()).toBe(4);
  });

  test("P4: which stands in the receipts alone is settled by the next process in the same way", async () => {
    const run = await three();
    repeats({ passedOn: true });
    const { conclude } = world.store;
    let concluded = 0;
    world.store.conclude = (...values) =>
      ++concluded === 2 ? Promise.reject(new Error("the power went")) : conclude(...values);
    await expect(carryOn(world, run, { lanes: 1, reads: true })).rejects.toThrow("the power went");
    world.store.conclude = conclude;
    await carryOn(world, run, { lanes: 1, reads: true });
    expect(await states(world, run)).toEqual({ a: "archived", b: "held", c: "archived" });
  });
});
