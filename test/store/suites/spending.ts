import { beforeEach, describe, expect, test } from "vitest";
import type { Verdict } from "../../../src/core/charges/readings.js";
import type { Judgement } from "../../../src/core/charges/verdict.js";
import { credits, noCredits, showCredits } from "../../../src/core/money.js";
import type { BalanceMark } from "../../../src/core/ports/spend-log.js";
import { type Day, dayOf } from "../../../src/core/quota/quota.js";
import type { Accounts } from "../../../src/store/accounts/accounts.js";
import { seqBlock } from "../../../src/store/accounts/accounts-schema.js";
import type { SpendLog } from "../../../src/store/accounts/spend-log.js";
import { ManualClock } from "../../manual-clock.js";
import type { OpenDatabase } from "./open.js";

export function spendingSuite(open: OpenDatabase): void {
  const origin = "https://service.example";
  const dayMs = 86_400_000;
  const hourMs = 3_600_000;
  const noon = new Date(2026, 10, 22, 12).getTime();
  const years = 3_650 * dayMs;
  let accounts: Accounts;
  let id: number;
  let spendLog: SpendLog;

  beforeEach(async () => {
    accounts = (await open(new ManualClock(noon))).accounts;
    id = (await accounts.accountOf(origin, "f1")).id;
    spendLog = accounts.spendLog({ origin, fingerprint: "f1", workspace: "one" });
  });

  const nothingNew: Judgement = {
    verdicts: [],
    hypotheses: ["net"],
    trusted: true,
    foreignAt: null,
    baseline: null,
    unsettled: 0,
    nextReadingAt: null,
    awaited: [],
  };
  const dayAt = (at: number): Day => dayOf({ earliest: at, latest: at });
  const spend = (credit: number, at = noon) => spendLog.intend({ itemKey: "k", price: credits(credit), at });
  /** On the day of that time. */
  const spent = async (at = noon) => showCredits(await accounts.spentOn(id, dayAt(at)));

  test("what a day has cost is counted over all keys of the account, and what was not charged is free", async () => {
    await accounts.name(id, "user-1");
    const second = await accounts.accountOf(origin, "f2");
    await accounts.name(second.id, "user-1");
    const others = accounts.spendLog({ origin, fingerprint: "f2", workspace: "two" });
    const accepted = await spend(4);
    await others.intend({ itemKey: "k", price: credits(8), at: noon });
    expect(await spent()).toBe("12");
    await spendLog.answered(accepted, { outcome: "accepted", charged: credits(5) });
    expect(await spent()).toBe("13");
    // What its end does not tell stays as it was.
    await spendLog.polled(accepted, { task: "completed", charged: null, endedAt: null });
    expect(await spent()).toBe("13");
    await spendLog.polled(accepted, { task: "failed", charged: noCredits, endedAt: null });
    await spendLog.answered(await spend(2), { outcome: "free" });
    expect(await spent()).toBe("8");
    const cap = { daily: { most: credits(9), day: dayAt(noon) }, kept: null };
    expect(await spendLog.intendWithin(cap, { itemKey: "k", price: credits(2), at: noon })).toBeNull();
    expect(await spendLog.intendWithin(cap, { itemKey: "k", price: credits(1), at: noon })).not.toBeNull();
  });

  test("a day ends at midnight, and what is known of only as one of two days counts for both", async () => {
    await spend(1);
    await spend(2, noon + dayMs);
    expect(await spent(noon + dayMs)).toBe("2");
    expect(await accounts.spentOn(id, dayOf({ earliest: noon, latest: noon + dayMs }))).toBe(credits(3));
  });

  describe("P7, P20: what was sent while the clock was ten years ahead", () => {
    test("counts on the day on which it is found, and no more on the next", async () => {
      await spend(4, noon + years);
      await spend(1, noon);
      expect(await spent()).toBe("5");
      expect(await spent(noon + hourMs)).toBe("5");
      expect(await spent(noon + dayMs)).toBe("0");
      // The day that the clock showed may have been the right one.
      expect(await spent(noon + years)).toBe("4");
    });

    test("does not stand in the way of what is sent afterwards: each counts on its day", async () => {
      await spend(4, noon + years);
      for (const days of [0, 1, 2]) await spend(1, noon + days * dayMs);
      expect(await spent(noon + 2 * dayMs)).toBe("5");
      expect(await spent(noon + 3 * dayMs)).toBe("0");
    });

    test("is found again if it was found while the clock was ahead", async () => {
      await spend(4, noon + years);
      await spent(noon + years / 2);
      expect(await spent()).toBe("4");
      expect(await spent(noon + dayMs)).toBe("0");
    });

    test("is found by its own account: another one's time may be wrong", async () => {
      const other = await accounts.accountOf("https://other.example", "f1");
      await spend(4, noon + years);
      await accounts.spentOn(other.id, dayAt(noon - years));
      const theirs = { origin: "https://other.example", fingerprint: "f1", workspace: "one" };
      await accounts.spendLog(theirs).intend({ itemKey: "k", price: credits(9), at: noon + years });
      await accounts.spentOn(other.id, dayAt(noon - years));
      expect(await spent()).toBe("4");
    });
  });

  test("P7, P20: what was spent today still counts after the clock was put back by ten years and right again", async () => {
    await spend(4);
    expect(await spent(noon - years)).toBe("4");
    expect(await spent()).toBe("4");
    expect(await spent(noon + dayMs)).toBe("0");
  });

  describe("P7: from a balance that was read, all keys and workspaces of the account have taken", () => {
    let mark: BalanceMark;
    let elsewhere: SpendLog;
    /** The balance is read now: what was begun before stands apart. */
    const read = async (reading: number | null = null) => {
      mark = { seq: await spendLog.seq(), reading, dayBefore: noon - dayMs };
    };
    const taken = async () => {
      const { since, before } = await accounts.takenFrom(id, mark);
      return [showCredits(since), showCredits(before)];
    };
    const another = (credit: number) =>
      elsewhere.intend({ itemKey: "other", price: credits(credit), at: noon });
    const lost = { outcome: "unknown", completeError: false } as const;

    beforeEach(async () => {
      await accounts.name(id, "user-1");
      await accounts.name((await accounts.accountOf(origin, "f2")).id, "user-1");
      elsewhere = accounts.spendLog({ origin, fingerprint: "f2", workspace: "two" });
      await accounts.accountOf(origin, "f3");
      const stranger = accounts.spendLog({ origin, fingerprint: "f3", workspace: "three" });
      await stranger.intend({ itemKey: "k", price: credits(100), at: noon });
    });

    test("what was begun since, but for what was free or has failed", async () => {
      await spendLog.answered(await spend(50), { outcome: "accepted", charged: credits(50) });
      await read();
      expect(await taken()).toEqual(["0", "0"]);
      const [own, others] = [await spend(1), await another(2)];
      expect(await taken()).toEqual(["3", "0"]);
      await elsewhere.answered(others, { outcome: "accepted", charged: credits(5) });
      await spendLog.answered(own, { outcome: "free" });
      expect(await taken()).toEqual(["5", "0"]);
      await elsewhere.polled(others, { task: "failed", charged: noCredits, endedAt: null });
      expect(await taken()).toEqual(["0", "0"]);
      // A clock that is behind by years does not hide it.
      await spend(7, noon - years);
      expect(await taken()).toEqual(["7", "0"]);
    });

    test("each of many requests once, however many have been before", async () => {
      // Sums are kept for blocks of requests: the balance is read in the middle of one, and others follow.
      for (let begun = 0; begun < 1_500; begun++)
        await spendLog.answered(await spend(0), { outcome: "free" });
      await read();
      const before = mark.seq;
      await spend(1);
      const next = (Math.floor(before / seqBlock) + 1) * seqBlock;
      while ((await spendLog.seq()) < next) await spendLog.answered(await spend(0), { outcome: "free" });
      await spend(2);
      expect(await taken()).toEqual(["3", "0"]);
    });

    test("requests that were in flight then, whenever their answer comes", async () => {
      const others = await another(2);
      await read();
      expect(await taken()).toEqual(["0", "2"]);
      await elsewhere.answered(others, { outcome: "accepted", charged: credits(3) });
      expect(await taken()).toEqual(["0", "3"]);
      await read();
      expect(await taken()).toEqual(["0", "0"]);
    });

    test("what was without an answer for less than a day, until it turns out to be free or in the balance", async () => {
      const first = await spend(1, noon - dayMs + 1);
      await spend(30, noon - dayMs);
      const second = await another(2);
      const third = await spend(4);
      await spendLog.answered(first, lost);
      await elsewhere.answered(second, lost);
      await spendLog.answered(third, lost);
      await read();
      expect(await taken()).toEqual(["0", "7"]);
      const found = async (entry: number, verdict: Verdict, seq: number | null) => {
        const judgement = { ...nothingNew, verdicts: [{ entry, verdict, evidence: "", seq }] };
        expect(await spendLog.keep(judgement, await spendLog.seq())).toBe(true);
      };
      await found(first, "not_charged", null);
      expect(await taken()).toEqual(["0", "6"]);
      // A reading after the balance shows it: perhaps it was charged in between.
      await found(third, "charged", (await spendLog.seq()) + 1);
      expect(await taken()).toEqual(["0", "6"]);
      await read();
      expect(await taken()).toEqual(["0", "2"]);
      await found(second, "undecided", null);
      expect(await taken()).toEqual(["0", "2"]);
    });

    test("nothing for what the very reading shows to be charged", async () => {
      const entry = await spend(4);
      await spendLog.answered(entry, lost);
      const seq = await spendLog.seq();
      const reading = await spendLog.read({ used: credits(4), requests: 1, over: 1, servedAt: noon });
      mark = { seq, reading, dayBefore: noon - dayMs };
      expect(await taken()).toEqual(["0", "4"]);
      const verdicts = [{ entry, verdict: "charged" as const, evidence: "", seq: reading }];
      await spendLog.keep({ ...nothingNew, verdicts }, await spendLog.seq());
      expect(await taken()).toEqual(["0", "0"]);
      // That its task is found afterwards takes nothing once more.
      await spendLog.answered(entry, { outcome: "accepted", charged: credits(4) });
      expect(await taken()).toEqual(["0", "0"]);
    });

    test("as much as is left, down to the last request of any workspace", async () => {
      await another(1);
      await read();
      const bounds = { daily: null, kept: { most: credits(5), mark } };
      const spendWithin = (of: SpendLog) =>
        of.intendWithin(bounds, { itemKey: "k", price: credits(2), at: noon });
      expect(await spendWithin(spendLog)).not.toBeNull();
      expect(await spendWithin(elsewhere)).not.toBeNull();
      expect(await spendWithin(spendLog)).toBeNull();
      const daily = { most: credits(6), day: dayAt(noon) };
      expect(
        await spendLog.intendWithin({ daily, kept: null }, { itemKey: "k", price: credits(1), at: noon }),
      ).not.toBeNull();
      expect(
        await spendLog.intendWithin({ ...bounds, daily }, { itemKey: "k", price: credits(1), at: noon }),
      ).toBeNull();
    });
  });
}
