import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import { carryOn, openWorld, picture, type RunChange, start, states, type World } from "./harness.js";

/** The wall clock is put back in the middle of each wait of a running process. */
let world: World;
let run: Run;

beforeEach(async () => {
  world = await openWorld();
  run = await start(
    world,
    [1, 2, 3].map((number) => picture(`p${number}`, number)),
  );
});
afterEach(() => world.close());

const minute = 60_000;
const jumps: [string, number][] = [
  ["twenty minutes", 20 * minute],
  ["a day", 24 * 60 * minute],
  ["ten years", 10 * 365 * 24 * 60 * minute],
];
const cut: Reply = { kind: "no_answer", reason: "other side closed" };
const answer = (status: number, body = "{}"): Reply => ({ kind: "answer", status, headers: {}, body });
const settled: RunChange = {
  settling: { ...defaultReconcile, unsettledMax: 5, wait: true, orphanCredits: noCredits },
};

/** Stands in for the answers of the nth requests of a kind (from 1); `then` follows the last of them, a second later. */
function tamper(
  kind: "POST" | "/task/" | "/me",
  which: readonly number[],
  reply: Reply,
  then = () => {},
): void {
  const before = world.tamper ?? ((_request, pass) => pass());
  let count = 0;
  world.tamper = async (request, pass) => {
    if (!request.includes(kind) || !which.includes(++count)) return before(request, pass);
    if (count === which.at(-1)) later(then);
    return reply;
  };
}

/** In the middle of the wait that begins now: all of them are longer than that. */
function later(act: () => void): void {
  void world.clock.sleep(500).then(act);
}

/** Carries the run on and returns how long it took, by the clock that nobody sets. */
async function lasts(change: RunChange): Promise<number> {
  const began = world.clock.monotonic();
  await carryOn(world, run, { lanes: 1, reads: true, onDailyLimit: "wait", ...change });
  return world.clock.monotonic() - began;
}

async function expectArchived(): Promise<void> {
  expect(Object.values(await states(world, run))).toEqual(["archived", "archived", "archived"]);
}

describe.each(jumps)("P20: a clock that is put back by %s while a run waits", (_, byMs) => {
  const putBack = () => world.clock.set(-byMs);

  test("for a service that could not be reached", async () => {
    tamper("POST", [2], { kind: "not_sent", reason: "ECONNREFUSED" }, putBack);
    expect(await lasts({})).toBeLessThan(5 * minute);
    await expectArchived();
  });

  test("for another poll of a task, after one without an answer", async () => {
    tamper("/task/", [1], cut, putBack);
    expect(await lasts({})).toBeLessThan(5 * minute);
    await expectArchived();
  });

  test("for a disk that takes no receipts", async () => {
    world.refuseReceipts = true;
    later(() => {
      world.refuseReceipts = false;
      putBack();
    });
    expect(await lasts({})).toBeLessThan(5 * minute);
    await expectArchived();
  });

  test("for credits", async () => {
    tamper("POST", [2], answer(402, '{"code":"INSUFFICIENT_CREDITS"}'), putBack);
    expect(await lasts({ onInsufficient: "wait" })).toBeLessThan(10 * minute);
    await expectArchived();
  });

  test("for counters that could not be read", async () => {
    tamper("POST", [2], cut);
    tamper("/me", [2, 3, 4], answer(500), putBack);
    expect(await lasts(settled)).toBeLessThan(40 * minute);
    await expectArchived();
  });

  test("for the time of the next reading", async () => {
    tamper("POST", [2], cut, () => void world.clock.sleep(2 * minute).then(putBack));
    expect(await lasts(settled)).toBeLessThan(40 * minute);
    await expectArchived();
    expect(world.sent.filter((request) => request.includes("/me")).length).toBeLessThan(8);
  });
});

describe.each([
  ["put back by ten years", -3650],
  ["put ahead by ten years", 3650],
  ["put ahead by an hour", 1 / 24],
])("P20: a task that is not finished after the clock was %s", (_, days) => {
  beforeEach(async () => {
    await world.close();
    world = await openWorld({ taskMs: { min: 40_000, max: 40_000 } });
    run = await start(world, [picture("slow", 1)]);
  });

  test("is collected as soon as any other: its age is the service's", async () => {
    tamper("/task/", [1], cut, () => world.clock.set(days * 24 * 60 * minute));
    expect(await lasts({})).toBeLessThan(5 * minute);
    expect(Object.values(await states(world, run))).toEqual(["archived"]);
  });
});

describe.each([
  ["back by ten years, then right", -3650, 3650],
  ["ahead by ten years, then right", 3650, -3650],
  ["right, then ahead by ten years", 0, 3650],
])("P20: a task that was begun while the clock was %s", (_, before, after) => {
  const set = (days: number) => world.clock.set(days * 24 * 60 * minute);

  test.each([
    ["is not answered", cut],
    ["fails at the service", answer(500)],
  ])(
    "is collected by the next process as soon as any other, though a look at it %s",
    async (_case, reply) => {
      set(before);
      const interrupted = new AbortController();
      world.onProgress = ({ counts }) => {
        if (counts.processing === 3) interrupted.abort();
      };
      await carryOn(world, run, { reads: true, interrupt: interrupted.signal });
      set(after);
      tamper("/task/", [1, 2, 3], reply);
      expect(await lasts({})).toBeLessThan(5 * minute);
      await expectArchived();
    },
  );
});
