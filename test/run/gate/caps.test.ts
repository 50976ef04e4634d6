import { describe, expect, test } from "vitest";
import { credits, minus, noCredits } from "../../../src/core/money.js";
import { defaultRunOptions, type RunOptions } from "../../../src/core/next/options.js";
import type { BalanceMark } from "../../../src/core/ports/spend-log.js";
import type { Run } from "../../../src/core/ports/store.js";
import type { Day } from "../../../src/core/quota/quota.js";
import { Caps, keeping } from "../../../src/run/gate/caps.js";
import type { Keep } from "../../../src/run/gate/ports.js";
import type { Accounts } from "../../../src/store/accounts/accounts.js";

const at = (ms: number) => ({ earliest: ms, latest: ms });
const mark = { seq: 7, reading: null, dayBefore: 0 };
const keep = { least: credits(95), most: credits(5), mark };

const capsOf = (options: Partial<RunOptions>, kept: Keep | null = null) =>
  new Caps({ run: { options: { ...defaultRunOptions, sandbox: true, ...options } } as Run, keep: kept });

const capped = (maxCredits: number | null = null, daily: number | null = null) =>
  capsOf(
    {
      maxCredits: maxCredits === null ? null : credits(maxCredits),
      modelCaps: { film: credits(20) },
      ...(daily === null ? {} : { dailyCredits: credits(daily) }),
    },
    keep,
  );

/** What has been taken from the balance since it was read, and what earlier requests may yet take. */
const taken = (since: number, before = 0, from: BalanceMark = mark): Pick<Accounts, "takenFrom"> => ({
  takenFrom: async (accountId, asked) => {
    expect([accountId, asked]).toEqual([1, from]);
    return { since: credits(since), before: credits(before) };
  },
});

describe("caps", () => {
  test("leave the balance that is to be kept, or stop at the run's own cap when that comes first", async () => {
    const looked = async (maxCredits: number | null) => {
      const caps = capped(maxCredits);
      await caps.updateKept(taken(0), 1, credits(3));
      return caps;
    };
    expect((await looked(null)).cap).toBe(credits(8));
    expect((await looked(null)).reached(noCredits).kind).toBe("keep");
    expect((await looked(7)).cap).toBe(credits(7));
    const stop = { kind: "cap", message: "the credit cap is reached" };
    expect((await looked(7)).reached(noCredits)).toEqual(stop);
    expect((await looked(9)).cap).toBe(credits(8));
  });

  test("say which of them ends the run", async () => {
    const caps = capped();
    await caps.updateKept(taken(0), 1, credits(3));
    expect(caps.reached(credits(8))).toEqual({
      kind: "keep",
      message: "the balance would fall below the 95 credits that --keep-credits leaves",
    });
  });

  test("that are not set ask for nothing and end nothing", async () => {
    const caps = capsOf({});
    const none = () => Promise.reject(new Error("asked"));
    await caps.updateKept({ takenFrom: none }, 1, credits(3));
    await caps.takeRemaining({ takenFrom: none }, 1, credits(3));
    await caps.updateDay({ spentOn: none }, 1, { now: at(0), committed: credits(3) });
    caps.takeReading(credits(3), mark);
    expect([caps.cap, caps.bounds(at(0)), caps.allowRecheck(credits(3))]).toEqual([null, null, false]);
    expect(await caps.modelBudgets({ spending: none }, 1, [])).toEqual(new Map());
    // A model without a cap does not wait.
    expect([caps.wait(["film"], new Map()), caps.models]).toEqual([true, []]);
    const unknown = capped();
    expect([unknown.wait(["film"], new Map()), unknown.models]).toEqual([true, []]);
  });

  test("leave out of a balance what others of this machine take from it, and what earlier requests may yet be charged", async () => {
    const caps = capped();
    await caps.updateKept(taken(2, 1), 1, credits(4));
    expect(caps.cap).toBe(credits(6));
    await caps.updateKept(taken(0, 0), 1, credits(4));
    expect(caps.cap).toBe(credits(9));
  });

  test("count what somebody else spends from the balance, and never take it for more than it was", async () => {
    const caps = capped();
    const told = async (balance: number) => {
      await caps.takeRemaining(taken(2), 1, credits(balance));
      await caps.updateKept(taken(2), 1, credits(5));
      return caps.cap;
    };
    expect(await told(98)).toBe(credits(8));
    expect(await told(96)).toBe(credits(6));
    expect(await told(500)).toBe(credits(6));
  });

  test("count what somebody else spends as well as what earlier requests may yet be charged", async () => {
    const caps = capped();
    await caps.updateKept(taken(1, 2), 1, credits(1));
    expect(caps.cap).toBe(credits(3));
    // The run has spent one credit of the hundred, and somebody else one.
    await caps.takeRemaining(taken(1, 2), 1, credits(98));
    await caps.updateKept(taken(1, 2), 1, credits(1));
    expect(caps.cap).toBe(credits(2));
  });

  test("take the lowest of balances that are read at the same moment", async () => {
    const caps = capped();
    await Promise.all([96, 98].map((balance) => caps.takeRemaining(taken(2), 1, credits(balance))));
    await caps.updateKept(taken(2), 1, credits(5));
    expect(caps.cap).toBe(credits(6));
  });

  test("take a balance that was read meanwhile for the newer one", async () => {
    const caps = capped();
    const later = { ...mark, seq: 9 };
    const accounts: Pick<Accounts, "takenFrom"> = {
      async takenFrom() {
        caps.takeReading(credits(99), later);
        return { since: noCredits, before: noCredits };
      },
    };
    await caps.takeRemaining(accounts, 1, credits(96));
    expect(caps.bounds(at(0))?.kept).toEqual(keeping(credits(95), credits(99), later));
  });

  test("let the balance be read once more for what is committed, where it is what is used up", async () => {
    const caps = capped(7);
    expect(caps.allowRecheck(credits(7))).toBe(false);
    await caps.updateKept(taken(5), 1, credits(5));
    expect(caps.allowRecheck(credits(5))).toBe(true);
    expect(caps.allowRecheck(credits(5))).toBe(false);
    expect(caps.allowRecheck(credits(6))).toBe(true);
  });

  test("reckon with the balance of a later reading", async () => {
    const caps = capped();
    const later = { ...mark, seq: 9 };
    caps.takeReading(credits(99), later);
    await caps.updateKept(taken(2, 1, later), 1, credits(10));
    expect(caps.cap).toBe(credits(11));
    expect(caps.bounds(at(0))).toEqual({ daily: null, kept: keeping(credits(95), credits(99), later) });
  });

  test("hold a paid request to what they are, and to nothing where there are none", () => {
    expect(capped(null, 50).bounds(at(0))).toMatchObject({ daily: { most: credits(50) }, kept: keep });
    expect(capsOf({ maxCredits: credits(1) }).bounds(at(0))).toBeNull();
    const dailyAlone = capsOf({ dailyCredits: credits(50) });
    expect(dailyAlone.bounds(at(0))).toMatchObject({ daily: { most: credits(50) }, kept: null });
  });

  test("of a day count what all runs have spent since midnight, and start again with the next day", async () => {
    const caps = capped(null, 50);
    const asked: number[] = [];
    const accounts = {
      spentOn: async (_: number, { from }: Day) => {
        asked.push(from);
        return credits(asked.length === 1 ? 49 : 0);
      },
    };
    const noon = new Date(2026, 10, 20, 12).getTime();
    await caps.updateDay(accounts, 1, { now: at(noon), committed: credits(4) });
    expect(asked).toEqual([new Date(2026, 10, 20).getTime()]);
    await caps.updateKept(taken(1), 1, credits(4));
    expect(caps.cap).toBe(credits(5));
    expect(caps.reached(credits(4))).toEqual({
      kind: "daily",
      message:
        "the day's credits are used up: all runs of the account have spent 49 of the 50 that --max-credits-per-day allows",
    });
    await caps.updateDay(accounts, 1, { now: at(noon + 24 * 3_600_000), committed: credits(4) });
    expect(caps.cap).toBe(credits(8));
    expect(caps.liftReached(credits(4))).toBe(true);
    expect(caps.reached(credits(4)).kind).toBe("keep");
  });

  test("are no longer reached once more is left than when they were", () => {
    const caps = capped(7);
    expect(caps.liftReached(noCredits)).toBe(false);
    caps.reached(credits(5));
    expect(caps.liftReached(credits(6))).toBe(false);
    expect(caps.liftReached(credits(5))).toBe(false);
    expect(caps.liftReached(credits(4))).toBe(true);
    expect(caps.liftReached(credits(3))).toBe(false);
  });

  test("of a model hold it until one of its tasks has failed", async () => {
    const caps = capped();
    let committed = credits(18);
    const asked: unknown[] = [];
    const store = {
      spending: async (...of: unknown[]) => {
        asked.push(of);
        const charged = credits(8);
        const pending = minus(committed, charged);
        return { charged, pending, atService: committed, tasks: 1, inDoubt: 0 };
      },
    };
    const budgets = await caps.modelBudgets(store, 1, [7]);
    // Of the items that are about to be submitted, those of the model count.
    expect(asked).toEqual([[1, { model: "film", beginning: [7] }]]);
    expect(budgets).toEqual(new Map([["film", credits(2)]]));
    expect(caps.wait([], budgets)).toBe(false);
    expect(caps.wait(["film"], budgets)).toBe(true);
    await caps.modelBudgets(store, 1, []);
    expect(caps.models).toEqual(["film"]);
    expect(caps.messages).toEqual(["film has reached its cap of 20 credits; its other items wait"]);
    committed = credits(9);
    expect(await caps.modelBudgets(store, 1, [])).toEqual(new Map([["film", credits(11)]]));
    expect(caps.models).toEqual([]);
  });
});
