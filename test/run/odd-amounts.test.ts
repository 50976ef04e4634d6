import { afterEach, describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;

afterEach(() => world.close());

const pictures = (count: number) => Array.from({ length: count }, (_, at) => picture(`p${at + 1}`, at + 1));

/** Answers to these requests come with these fields, `undefined` for none. */
function tells(which: string, fields: object): void {
  world.tamper = async (request, pass) => {
    const reply = await pass();
    if (!request.includes(which) || reply.kind !== "answer") return reply;
    return { ...reply, body: JSON.stringify({ ...JSON.parse(reply.body), ...fields }) };
  };
}

describe("a service that tells amounts which are none", () => {
  test.each([
    ["POST", "a balance", { credits_remaining: 1e10 }],
    ["POST", "a charge", { credits_consumed: -1e300 }],
    ["/task/", "a charge", { credits_consumed: 1e10 }],
  ])("P4: %s with %s beyond all bounds loses no task", async (request, _, fields) => {
    world = await openWorld();
    const run = await start(world, pictures(2));
    tells(request, fields);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ p1: "archived", p2: "archived" });
    expect(await world.store.spending(run.id)).toMatchObject({ charged: credits(8) });
  });

  test("P7: a task that does not say what it cost does not come free of the cap", async () => {
    world = await openWorld();
    const run = await start(world, pictures(5));
    tells("/task/", { credits_consumed: undefined });
    const { stops } = await carryOn(world, run, { maxCredits: credits(8) });
    expect(stops.map(({ kind }) => kind)).toEqual(["cap"]);
    expect(Object.values(await states(world, run)).toSorted()).toEqual([
      ...["archived", "archived", "planned", "planned", "planned"],
    ]);
  });
});
