import { describe, expect, test } from "vitest";
import type { Day } from "../../src/core/day.js";
import { credits, noCredits } from "../../src/core/money.js";
import type { Store } from "../../src/core/store.js";
import { Caps, keeping } from "../../src/run/caps.js";

const at = (ms: number) => ({ earliest: ms, latest: ms });

const capped = (maxCredits: number | null = null, daily: number | null = null) =>
  new Caps({
    maxCredits: maxCredits === null ? null : credits(maxCredits),
    modelCaps: new Map([["film", credits(20)]]),
    daily: daily === null ? null : credits(daily),
    keep: { least: credits(95), room: credits(5), doubtful: noCredits, since: 0, after: 7 },
  });

/** Credits that the run has committed, and what of that was since the balance was read. */
const spends = (committed: number, since: number): Pick<Store, "spending"> => ({
  spending: async (_, of) => {
    if (of?.after !== undefined) expect(of).toEqual({ after: 7 });
    const pending = credits(of?.after === undefined ? committed : since);
    return { charged: noCredits, pending, latest: 9 };
  },
});

describe("caps", () => {
  test("leave the balance that is to be kept, or stop at the run's own cap when that comes first", async () => {
    const looked = async (maxCredits: number | null) => {
      const caps = capped(maxCredits);
      await caps.lookAtKept(spends(3, 0), 1, credits(3));
      return caps;
    };
    expect((await looked(null)).cap).toBe(credits(8));
    expect((await looked(null)).reached(noCredits).kind).toBe("keep");
    expect((await looked(7)).cap).toBe(credits(7));
    const stop = { kind: "cap", message: "the credit cap is reached" };
    expect((await looked(7)).reached(noCredits)).toEqual(stop);
    expect((await looked(9)).cap).toBe(credits(8));
  });

  test("reserve of a balance what earlier requests may yet be charged", async () => {
    const asked: number[] = [];
    const store: Pick<Store, "spending" | "doubtful"> = {
      spending: async () => ({ charged: credits(9), pending: credits(6), latest: 7 }),
      doubtful: async (since) => {
        asked.push(since);
        return credits(2);
      },
    };
    const now = { least: credits(95), balance: credits(100), now: at(90_000_000) };
    expect(await keeping(store, 1, now)).toEqual({
      ...{ least: credits(95), room: credits(5), doubtful: credits(2), since: 3_600_000, after: 7 },
    });
    expect(asked).toEqual([3_600_000]);
  });

  test("count what others spend from the balance, and never take it for more than it was", async () => {
    const caps = capped();
    const told = async (balance: number) => {
      await caps.balanceTold(spends(5, 2), 1, credits(balance));
      await caps.lookAtKept(spends(5, 2), 1, credits(5));
      return caps.cap;
    };
    expect(await told(98)).toBe(credits(8));
    expect(await told(96)).toBe(credits(6));
    expect(await told(500)).toBe(credits(6));
  });

  test("count what others spend as well as what earlier requests may yet be charged", async () => {
    const keep = { least: credits(95), room: credits(5), doubtful: credits(2), since: 3_600_000, after: 7 };
    const caps = new Caps({ maxCredits: null, modelCaps: new Map(), daily: null, keep });
    await caps.lookAtKept(spends(1, 1), 1, credits(1));
    expect(caps.cap).toBe(credits(3));
    // The run has spent one credit of the hundred, and somebody else one.
    await caps.balanceTold(spends(1, 1), 1, credits(98));
    await caps.lookAtKept(spends(1, 1), 1, credits(1));
    expect(caps.cap).toBe(credits(2));
  });

  test("reckon with the balance of a later reading, of which nothing sent since has been taken", async () => {
    const caps = capped();
    const store = { ...spends(8, 3), doubtful: async () => credits(1) };
    const take = await caps.readingBalance(store, 1);
    await take?.(credits(99), at(0));
    const since: Pick<Store, "spending"> = {
      spending: async (_, of) => ({
        charged: noCredits,
        pending: credits(of?.after === 9 ? 2 : 10),
        latest: 11,
      }),
    };
    await caps.lookAtKept(since, 1, credits(10));
    expect(caps.cap).toBe(credits(11));
  });

  test("give back what was kept back for a request that was free, once", async () => {
    const keep = { least: credits(95), room: credits(5), doubtful: credits(2), since: 100, after: 7 };
    const caps = new Caps({ maxCredits: null, modelCaps: new Map(), daily: null, keep });
    const free = { id: 7, runId: 1, sentAt: 101, price: credits(2) };
    // It was not kept back for what is older, nor for what this process has sent.
    caps.wasFree(1, { ...free, sentAt: 100 });
    caps.wasFree(1, { ...free, id: 8 });
    await caps.lookAtKept(spends(0, 0), 1, noCredits);
    expect(caps.cap).toBe(credits(3));
    caps.wasFree(1, free);
    await caps.lookAtKept(spends(0, 0), 1, noCredits);
    expect(caps.cap).toBe(credits(5));
    caps.wasFree(2, { ...free, id: 8 });
    await caps.lookAtKept(spends(0, 0), 1, noCredits);
    expect(caps.cap).toBe(credits(7));
  });

  test("take nothing from the balance that earlier requests give back: it may have been in it when it was read", async () => {
    const caps = capped();
    await caps.lookAtKept(spends(8, 5), 1, credits(8));
    expect(caps.cap).toBe(credits(8));
    await caps.lookAtKept(spends(5, 5), 1, credits(5));
    expect(caps.cap).toBe(credits(5));
    await caps.lookAtKept(spends(4, 4), 1, credits(4));
    expect(caps.cap).toBe(credits(5));
  });

  test("of a day count what all runs have spent since midnight, and begin anew with the next one", async () => {
    const caps = capped(null, 50);
    const asked: number[] = [];
    const accounts = {
      spentOn: async (_: number, { from }: Day) => {
        asked.push(from);
        return credits(asked.length === 1 ? 49 : 0);
      },
    };
    const noon = new Date(2026, 10, 20, 12).getTime();
    await caps.lookAtDay(accounts, 1, { now: at(noon), committed: credits(4) });
    expect(asked).toEqual([new Date(2026, 10, 20).getTime()]);
    await caps.lookAtKept(spends(4, 1), 1, credits(4));
    expect(caps.cap).toBe(credits(5));
    expect(caps.reached(credits(4))).toEqual({
      kind: "daily",
      message:
        "the day's credits are used up: all runs of the account have spent 49 of the 50 that --max-credits-per-day allows",
    });
    await caps.lookAtDay(accounts, 1, { now: at(noon + 24 * 3_600_000), committed: credits(4) });
    expect(caps.cap).toBe(credits(8));
    expect(caps.takeBack(credits(4))).toBe(true);
    expect(caps.reached(credits(4)).kind).toBe("keep");
  });

  test("are no longer reached once more is left than when they were", () => {
    const caps = capped(7);
    expect(caps.takeBack(noCredits)).toBe(false);
    caps.reached(credits(5));
    expect(caps.takeBack(credits(6))).toBe(false);
    expect(caps.takeBack(credits(5))).toBe(false);
    expect(caps.takeBack(credits(4))).toBe(true);
    expect(caps.takeBack(credits(3))).toBe(false);
  });

  test("of a model hold it until one of its tasks has failed", async () => {
    const caps = capped();
    let committed = credits(18);
    const store = {
      spending: async () => ({ charged: noCredits, pending: committed, latest: 0 }),
    };
    const rooms = await caps.rooms(store, 1);
    expect(rooms).toEqual(new Map([["film", credits(2)]]));
    expect(caps.wait([], rooms)).toBe(false);
    expect(caps.wait(["film"], rooms)).toBe(true);
    await caps.rooms(store, 1);
    expect(caps.models).toEqual(["film"]);
    expect(caps.messages).toEqual(["film has reached its cap of 20 credits; its other items wait"]);
    committed = credits(9);
    expect(await caps.rooms(store, 1)).toEqual(new Map([["film", credits(11)]]));
    expect(caps.models).toEqual([]);
  });
});
