import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { reserveBytes } from "../../src/archive/disk/space.js";
import type { Run } from "../../src/core/ports/store.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

const minute = 60_000;
let world: World;
let run: Run;
const pictures = Array.from({ length: 6 }, (_, index) => picture(`p${index + 1}`, index));
const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;
const looks = () => world.sent.filter((request) => request.includes("/task/")).length;
const refused = /^disk full, .* free and .* needed \(.*demo\)$/;

/** Does something to the world after the run has run for this long (ms). */
const meanwhile = (ms: number, what: () => void) => void world.clock.sleep(ms).then(what);

async function expectArchived(count: number): Promise<void> {
  expect(Object.values(await states(world, run))).toEqual(Array(count).fill("archived"));
}

async function begin(items = pictures, taskMs = 900): Promise<void> {
  world = await openWorld({ taskMs: { min: taskMs, max: taskMs } });
  run = await start(world, items);
}

afterEach(() => world.close());

describe("a disk that has no room for the archive from the start", () => {
  beforeEach(() => begin());

  test("P17: nothing is bought until there is room, and then the run continues automatically", async () => {
    world.freeBytes = reserveBytes - 1;
    const begun = world.clock.now();
    let bought = -1;
    meanwhile(10 * minute, () => {
      bought = posts();
      world.freeBytes = null;
    });
    const ended = await carryOn(world, run);
    expect(bought).toBe(0);
    expect(ended.gate.stops).toEqual([]);
    expect(ended.gate.refusedByDisk).toBeNull();
    await expectArchived(6);
    expect(world.clock.now() - begun).toBeLessThan(11 * minute);
    expect(world.progress.map(({ reason }) => reason)).toContainEqual(
      expect.objectContaining({
        kind: "disk",
        text: expect.stringMatching(/^files cannot be saved .* disk full/),
      }),
    );
    expect(world.progress.at(-1)?.reason).toBeNull();
  });

  test("P17: is reported at the end of an interrupted run, and so is a disk that fills later", async () => {
    world.freeBytes = 0;
    const interrupt = new AbortController();
    meanwhile(minute, () => interrupt.abort());
    const ended = await carryOn(world, run, { interrupt: interrupt.signal });
    expect(world.sent).toEqual([]);
    expect(ended.gate.refusedByDisk).toMatch(refused);
  });

  test("P17: free space is checked every 15 seconds, so that a minute of room is not missed", async () => {
    world.freeBytes = 0;
    let seen = false;
    meanwhile(10 * minute, () => {
      world.freeBytes = null;
    });
    meanwhile(10 * minute + 16_000, () => {
      seen = posts() > 0;
    });
    await carryOn(world, run);
    expect(seen).toBe(true);
  });

  test("P17: is no trouble of a run that buys nothing", async () => {
    await carryOn(world, run);
    world.freeBytes = 0;
    world.progress.length = 0;
    const ended = await carryOn(world, run);
    expect(ended.gate.refusedByDisk).toBeNull();
    expect(world.progress.map(({ reason }) => reason)).toEqual([null]);
  });
});

test("P17: what is at the service is asked for and waits for room, and nothing is bought beside it", async () => {
  await begin(pictures, 5 * minute);
  const interrupt = new AbortController();
  world.tamper = async (request, pass) => {
    const reply = await pass();
    if (request.startsWith("POST")) interrupt.abort();
    return reply;
  };
  await carryOn(world, run, { interrupt: interrupt.signal, lanes: 1 });
  expect(posts()).toBe(1);
  world.tamper = null;
  world.freeBytes = 0;
  let before: Record<string, string> = {};
  meanwhile(20 * minute, async () => {
    before = await states(world, run);
    world.freeBytes = null;
  });
  await carryOn(world, run, { lanes: 1 });
  expect(looks()).toBeGreaterThan(0);
  expect(Object.values(before).toSorted()).toEqual([...Array(5).fill("planned"), "ready"]);
  expect(posts()).toBe(6);
  await expectArchived(6);
});

test("P17: a disk that fills before the first task is finished ends the buying, not the run", async () => {
  await begin(
    Array.from({ length: 40 }, (_, index) => picture(`p${index}`, index)),
    5 * minute,
  );
  let bought = 0;
  // It waits for places in the minute's quota then.
  meanwhile(30_000, () => {
    bought = posts();
    world.freeBytes = 0;
  });
  let boughtLater = 0;
  meanwhile(4 * minute, () => {
    boughtLater = posts();
    world.freeBytes = null;
  });
  await carryOn(world, run, { perMinute: 10 });
  expect(bought).toBeGreaterThan(0);
  expect(boughtLater).toBe(bought);
  await expectArchived(40);
});
