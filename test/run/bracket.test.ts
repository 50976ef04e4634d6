import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fingerprint } from "../../src/api/key.js";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Run } from "../../src/core/ports/store.js";
import { openLanes } from "../../src/store/lock.js";
import { carryOn, openWorld, picture, type RunChange, start, states, type World } from "./harness.js";

/** A request without an answer, after which the key's counters cannot be read for a while, or not at all. */
let world: World;
let run: Run;

beforeEach(async () => {
  world = await openWorld({ taskMs: { min: 60_000, max: 60_000 } });
  run = await start(
    world,
    [1, 2, 3].map((number) => picture(`p${number}`, number)),
  );
});
afterEach(() => world.close());

const cut: Reply = { kind: "no_answer", reason: "other side closed" };
const answer = (status: number): Reply => ({ kind: "answer", status, headers: {}, body: "{}" });
const minute = 60_000;
const hour = 60 * minute;
const waiting: RunChange = {
  settling: { ...defaultReconcile, unsettledMax: 5, wait: true, orphanCredits: noCredits },
};

/** The second paid request is lost; `then` stands in for what follows it. */
function secondIsLost(
  then: (request: string, pass: () => Promise<Reply>) => Promise<Reply>,
  lost = () => {},
) {
  let posts = 0;
  world.tamper = async (request, pass) => {
    if (request.startsWith("POST") && ++posts === 2) {
      lost();
      return cut;
    }
    return posts < 2 ? pass() : then(request, pass);
  };
}

const isReading = (request: string) => request === "GET /api/v1/me";
const isPaid = (request: string) => request.startsWith("POST");
const requests = (which: (request: string) => boolean) => world.sent.filter(which).length;

describe("counters that the service does not return", () => {
  test("P15: a pause that the service asks for instead delays no download", async () => {
    const began = world.clock.now();
    let [posts, readings, isPolling] = [0, 0, false];
    world.tamper = async (request, pass) => {
      if (isPaid(request) && ++posts === 2) {
        while (!isPolling) await world.pass(100);
        return cut;
      }
      if (isReading(request) && ++readings === 2)
        return { ...answer(429), headers: { "retry-after": "900" } } as Reply;
      if (request.startsWith("GET /api/v1/task") && !isPolling && world.clock.now() - began > minute) {
        isPolling = true;
        await world.pass(5_000);
      }
      return pass();
    };
    let fetchedAt = Number.POSITIVE_INFINITY;
    world.onDownload = () => {
      fetchedAt = Math.min(fetchedAt, world.clock.now());
    };
    const session = await carryOn(world, run, { lanes: 1, reads: true, perMinute: null, perDay: null });
    expect(fetchedAt - began).toBeLessThan(2 * minute);
    expect(session.gate.stops).toEqual([]);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
  });

  test("P5: nothing is submitted; what is paid for is collected, and the run ends and says why", async () => {
    secondIsLost(async (request, pass) => (isReading(request) ? answer(500) : pass()));
    const began = world.clock.now();
    const session = await carryOn(world, run, { lanes: 1, reads: true });
    expect(requests(isPaid)).toBe(2);
    expect(session.gate.stops).toEqual([
      { kind: "unread", message: expect.stringMatching(/the key's counters cannot be read \(GET .*500/) },
    ]);
    expect(Object.values(await states(world, run)).toSorted()).toEqual(["archived", "planned", "unknown"]);
    expect(world.clock.now() - began).toBeLessThan(5 * minute);
    expect(requests(isReading)).toBeLessThan(12);
  });

  test("P5: the run does not stay for ever, though it was to stay until everything is settled", async () => {
    secondIsLost(async (request, pass) => (isReading(request) ? answer(500) : pass()));
    const session = await carryOn(world, run, { lanes: 1, reads: true, ...waiting });
    expect(session.gate.stops.map(({ kind }) => kind)).toEqual(["unread"]);
  });

  test("P5: submitting continues as soon as it returns them", async () => {
    let refused = 0;
    secondIsLost(async (request, pass) => (isReading(request) && ++refused <= 4 ? answer(500) : pass()));
    const session = await carryOn(world, run, { lanes: 1, reads: true });
    expect(session.gate.stops).toEqual([]);
    expect(Object.values(await states(world, run)).toSorted()).toEqual(["archived", "archived", "unknown"]);
    const [, lost, next] = world.sent.flatMap((request, at) => (isPaid(request) ? [at] : []));
    expect(world.sent.slice(lost, next).filter(isReading)).toHaveLength(5);
  });

  test.each([
    [401, "key"],
    [403, "subscription"],
  ])("a refusal with %i ends the run at once", async (status, kind) => {
    secondIsLost(async (request, pass) => (isReading(request) ? answer(status) : pass()));
    const session = await carryOn(world, run, { lanes: 1, reads: true });
    expect(session.gate.stops.map((stop) => stop.kind)).toEqual([kind]);
    expect(requests(isPaid)).toBe(2);
  });
});

describe("counters that would prove nothing, because another process has a paid request in flight", () => {
  test("P5 P12: nothing is submitted and no daily request is spent until it has ended", async () => {
    const gateFile = join(world.folder, "lanes", "key.lock");
    const theirs = openLanes({ folder: join(world.folder, "theirs"), count: 1, gateFile });
    const said: string[] = [];
    let [began, isOver] = [0, false];
    secondIsLost(
      async (request, pass) => {
        if (!isOver) said.push(request);
        return pass();
      },
      () => {
        began = world.clock.now();
        const lane = theirs.take();
        world.clock.alarm(began + 15 * minute, () => {
          isOver = true;
          lane?.release();
        });
      },
    );
    const session = await carryOn(world, run, { lanes: 1, reads: true, perDay: 100 });
    expect(said.filter((request) => isReading(request) || isPaid(request))).toEqual([]);
    expect(session.gate.stops).toEqual([]);
    expect(Object.values(await states(world, run)).toSorted()).toEqual(["archived", "archived", "archived"]);
    expect(world.clock.now() - began).toBeLessThan(18 * minute);
  });
});

describe("counters that may not be asked for today", () => {
  const account = () => world.accounts.accountOf("sandbox", fingerprint(world.sandbox.key));

  /** Only the lost request is left; `meanwhile` is what other processes do of the account. */
  async function lastIsLost(meanwhile: (accountId: number) => Promise<unknown>, change: RunChange) {
    const only = await start(world, [picture("p1", 1)]);
    const { id } = await account();
    world.tamper = async (request, pass) => {
      if (!isPaid(request)) return pass();
      await meanwhile(id);
      return cut;
    };
    const began = world.clock.now();
    const session = await carryOn(world, only, { lanes: 1, reads: true, ...change });
    expect(await states(world, only)).toMatchObject({ p1: "unknown" });
    return { session, ms: world.clock.now() - began };
  }

  test.each(["stop", "wait"] as const)(
    "P5: a run does not wait for a day's silence, with --on-daily-limit %s",
    async (onDailyLimit) => {
      const silence = (id: number) => world.accounts.silence(id, 24 * hour);
      const { session, ms } = await lastIsLost(silence, { onDailyLimit });
      expect(ms).toBeLessThan(minute);
      expect(session.gate.stops).toEqual([]);
    },
  );

  test("P5: a run does not wait for the requests of another day", async () => {
    const useUp = async (accountId: number) => {
      const caller = { accountId, fingerprint: fingerprint(world.sandbox.key) };
      for (let more = 0; more < 10; more++) {
        const { ticket } = await world.accounts.reserve(caller, "task");
        if (ticket) await world.accounts.answered(ticket);
      }
    };
    const { session, ms } = await lastIsLost(useUp, { perDay: 10 });
    expect(ms).toBeLessThan(minute);
    expect(session.gate.stops).toEqual([]);
  });

  test("P5: it waits for a short silence, so that a charge shows in the first reading", async () => {
    const { ms } = await lastIsLost((id) => world.accounts.silence(id, 5 * minute), {});
    expect(ms).toBeGreaterThanOrEqual(5 * minute);
    expect(requests(isReading)).toBe(2);
  });
});
