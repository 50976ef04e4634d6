import { afterEach, describe, expect, test } from "vitest";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;

afterEach(() => world.close());

const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;

const pictures = (count: number) => Array.from({ length: count }, (_, n) => picture(`p${n + 1}`, n + 1));

describe("two jobs of one workspace", () => {
  test("P12: the second leaves the day's requests that the first one's open task needs", async () => {
    world = await openWorld();
    const change = { lanes: 1, perDay: 12 };
    const first = await start(world, pictures(3), "first");
    const interrupt = new AbortController();
    world.tamper = (_, pass) => {
      if (posts() === 3) interrupt.abort();
      return pass();
    };
    await carryOn(world, first, { ...change, interrupt: interrupt.signal });
    world.tamper = null;
    const open = Object.values(await states(world, first)).filter((state) => state === "processing");
    const second = await start(world, pictures(9), "second");
    const { stops } = (await carryOn(world, second, change)).gate;
    expect(stops.map(({ kind }) => kind)).toEqual(["reserve"]);
    expect(12 - world.sent.length).toBeGreaterThanOrEqual(open.length);
    await carryOn(world, first, change);
    expect(await states(world, first)).toEqual({ p1: "archived", p2: "archived", p3: "archived" });
  });
});
