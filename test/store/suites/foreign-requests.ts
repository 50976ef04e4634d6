import { beforeEach, describe, expect, test } from "vitest";
import type { Endpoint } from "../../../src/api/endpoints.js";
import { defaultReconcile } from "../../../src/core/charges/readings.js";
import { type Judgement, reconcile } from "../../../src/core/charges/verdict.js";
import { credits } from "../../../src/core/money.js";
import type { Caller } from "../../../src/core/ports/accounts.js";
import { dayMs, lateMsMax, timeoutMs } from "../../../src/core/quota/quota.js";
import type { Accounts } from "../../../src/store/accounts/accounts.js";
import type { SpendLog } from "../../../src/store/accounts/spend-log.js";
import { ManualClock } from "../../manual-clock.js";
import type { OpenDatabase } from "./open.js";

export function foreignRequestsSuite(open: OpenDatabase): void {
  const origin = "https://service.example";
  const price = credits(4);
  let clock: ManualClock;
  let accounts: Accounts;
  let key: TestedKey;

  /** A key of ours, and what the service counts of it: both our requests and whatever a test adds. */
  interface TestedKey {
    caller: Caller;
    spendLog: SpendLog;
    used: number;
    requests: number;
  }

  async function keyOf(fingerprint: string, at = origin): Promise<TestedKey> {
    const { id } = await accounts.accountOf(at, fingerprint);
    await accounts.setLimits(id, { perMinute: null, perDay: null });
    const spendLog = accounts.spendLog({ origin: at, fingerprint, workspace: "here" });
    return { caller: { accountId: id, fingerprint }, spendLog, used: 100, requests: 0 };
  }

  /** Keys of one user belong to one account, as GET me says. */
  async function ofSameUser(of: TestedKey): Promise<void> {
    of.caller = { ...of.caller, accountId: (await accounts.name(of.caller.accountId, "user-1")).id };
  }

  beforeEach(async () => {
    clock = new ManualClock();
    accounts = (await open(clock)).accounts;
    key = await keyOf("f1");
  });

  async function reserve({ caller }: TestedKey, endpoint: Endpoint) {
    const { ticket } = await accounts.reserve(caller, endpoint);
    if (!ticket) throw new Error("no place");
    return ticket;
  }

  async function answered(of: TestedKey, endpoint: Endpoint): Promise<void> {
    const ticket = await reserve(of, endpoint);
    of.requests++;
    clock.advance(200);
    await accounts.answered(ticket);
  }

  /** GET me, and what else happens while it is in flight. */
  async function look(of: TestedKey, meanwhile = async () => {}) {
    const ticket = await reserve(of, "me");
    const { over } = await accounts.past(of.caller);
    of.requests++;
    const { used, requests } = of;
    await meanwhile();
    clock.advance(200);
    await accounts.answered(ticket);
    return { used: credits(used), requests, over, servedAt: clock.now() };
  }

  async function read(of = key, meanwhile?: () => Promise<void>): Promise<void> {
    await of.spendLog.read(await look(of, meanwhile));
  }

  async function judge(of = key): Promise<Judgement> {
    const evidence = await of.spendLog.evidence(defaultReconcile);
    if (!evidence) throw new Error("never read");
    return reconcile(evidence);
  }

  const isForeign = async (of = key) => (await judge(of)).foreignAt !== null;

  describe("requests with the same key to a wrong path of the service's host", () => {
    /** A base URL with a mistake in it was tried: the host's answer is no answer of the service. */
    async function mistyped(path = "/wrong", host = origin): Promise<void> {
      await answered(await keyOf("f1", host + path), "me");
      key.requests++;
    }
    const reopened = async () => void (await accounts.accountOf(origin, "f1"));

    test("P5: are ours, whether they came before the first reading or between two", async () => {
      await mistyped("/wrong");
      await mistyped("/api");
      await reopened();
      await read();
      expect(await isForeign()).toBe(false);
      await mistyped();
      await reopened();
      await read();
      expect(await isForeign()).toBe(false);
    });

    test("P5: explain requests in their own interval only", async () => {
      await read();
      await mistyped();
      // This service does not count what it has no path for.
      key.requests--;
      await reopened();
      await read();
      key.requests++;
      await read();
      expect(await isForeign()).toBe(true);
    });

    test("P9: occupy the windows of the account", async () => {
      await accounts.setLimits(key.caller.accountId, { perMinute: 20, perDay: 100 });
      const wrong = await keyOf("f1", `${origin}/wrong`);
      await accounts.setLimits(wrong.caller.accountId, { perMinute: 5, perDay: 50 });
      await answered(wrong, "me");
      await reopened();
      expect((await accounts.quota(key.caller.accountId)).minute.used).toBe(1);
    });

    test("P5: are not ours at another host, nor at an address where the service has answered", async () => {
      await read();
      await mistyped("", "https://other.example");
      await reopened();
      await read();
      expect(await isForeign()).toBe(true);
      const other = await keyOf("f1", `${origin}/staging`);
      await ofSameUser(other);
      await answered(other, "task");
      const fresh = await keyOf("f1", `${origin}/production`);
      fresh.requests = 1;
      await read(fresh);
      expect(await isForeign(fresh)).toBe(true);
    });
  });

  describe("P9: requests of somebody else with the same key", () => {
    const counted = async () => accounts.counted(key.caller, await look(key));
    const limit = () => accounts.setLimits(key.caller.accountId, { perMinute: 20, perDay: 100 });

    test("are found by the service's count, booked in the windows, and told", async () => {
      await limit();
      expect(await counted()).toBe(0);
      clock.advance(10_000);
      for (let n = 0; n < 3; n++) await answered(key, "task");
      expect(await counted()).toBe(0);
      clock.advance(10_000);
      key.requests += 7;
      expect(await counted()).toBe(7);
      const { minute, day } = await accounts.quota(key.caller.accountId);
      expect([minute.used, day.used]).toEqual([13, 13]);
    });

    test("do not include ours that were in flight at the last count; a lower count means none", async () => {
      const late = await reserve(key, "task");
      expect(await counted()).toBe(0);
      key.requests++;
      await accounts.answered(late);
      expect(await counted()).toBe(0);
      key.requests = 3;
      expect(await counted()).toBe(0);
    });

    test("explain a refusal: the pacing goes back", async () => {
      const { accountId } = key.caller;
      await limit();
      await counted();
      clock.advance(1_000);
      for (let n = 0; n < 5; n++) await answered(key, "task");
      expect((await accounts.silence(accountId, 1_000)).slowed).toBe("paced");
      clock.advance(20_000);
      key.requests += 25;
      expect(await counted()).toBe(25);
      expect((await accounts.quota(accountId)).pacing.spacingMs).toBe(0);
    });
  });

  describe("P2: a key that was used before its first reading, by anyone, counts as used from elsewhere", () => {
    test.each([
      ["by another program alone", 0, 1, true],
      ["by another program and by us", 3, 4, true],
      ["by us alone", 3, 3, false],
      ["by us alone, at a service that does not count all of it", 3, 0, false],
    ])("%s", async (_, ours, counted, expected) => {
      for (let n = 0; n < ours; n++) await answered(key, "task");
      key.requests = counted;
      await read();
      expect((await judge()).foreignAt).toBe(expected ? clock.now() : null);
      // Later readings are held against this one alone.
      clock.advance(60_000);
      const first = clock.now() - 60_000;
      await read();
      expect((await judge()).foreignAt).toBe(expected ? first : null);
    });
  });

  describe("P5: use of a key from elsewhere is found", () => {
    /** Requests whose answers were lost, and which may have arrived. */
    const lose = async (count: number) => {
      for (let n = 0; n < count; n++) await reserve(key, "task");
    };
    const untilNoneArrives = () => clock.advance(timeoutMs.task + lateMsMax);

    test("whatever was lost a month ago, or an answer too late to arrive would have a charge paid twice", async () => {
      await lose(40);
      clock.advance(30 * dayMs);
      // Somebody else has a task of 4 credits in progress.
      key.used += 4;
      await read();
      const paid = await key.spendLog.intend({ itemKey: "paid", price, at: clock.now() });
      await answered(key, "generate");
      key.used += 4;
      await key.spendLog.answered(paid, { outcome: "accepted", charged: price });
      await answered(key, "task");
      await key.spendLog.polled(paid, { task: "completed", charged: price, endedAt: clock.now() });
      await read();
      await key.spendLog.keep(await judge(), await key.spendLog.seq());
      // Ours arrives and is charged, but its answer is lost; then they look at their task, which has failed.
      const lost = await key.spendLog.intend({ itemKey: "lost", price, at: clock.now() });
      await reserve(key, "generate");
      key.used += 4;
      await key.spendLog.answered(lost, { outcome: "unknown", completeError: false });
      key.requests += 7;
      key.used -= 4;
      for (const minutes of [0, 4, 12]) {
        clock.advance(minutes * 60_000);
        await read();
      }
      const { foreignAt, verdicts } = await judge();
      expect(foreignAt).not.toBeNull();
      expect(verdicts).toMatchObject([{ entry: lost, verdict: "undecided" }]);
    });

    test("whatever was sent in the meantime with another key of the account", async () => {
      const other = await keyOf("f2");
      await ofSameUser(key);
      await ofSameUser(other);
      await read();
      for (let n = 0; n < 40; n++) await answered(other, "task");
      await read();
      expect(await isForeign()).toBe(false);
      for (let n = 0; n < 40; n++) await answered(other, "task");
      key.requests++;
      await read();
      expect(await isForeign()).toBe(true);
    });

    test("from the first reading of a key on, though its account is found out only by it", async () => {
      await ofSameUser(key);
      for (let n = 0; n < 40; n++) await answered(key, "task");
      const other = await keyOf("f2");
      await read(other);
      await ofSameUser(other);
      other.requests++;
      await read(other);
      expect(await isForeign(other)).toBe(true);
    });

    test("but not taken for it what is lost between two readings, or was so shortly before that it may still arrive", async () => {
      await lose(2);
      await read();
      await lose(2);
      key.requests += 4;
      await read();
      expect(await isForeign()).toBe(false);
      untilNoneArrives();
      await read();
      key.requests++;
      await read();
      expect(await isForeign()).toBe(true);
    });

    test("but not requests that were answered while a reading was in progress", async () => {
      await read(key, () => answered(key, "task"));
      await read(key, () => answered(key, "task"));
      await read();
      expect(await isForeign()).toBe(false);
    });

    test("between any two readings, though as many were lost since the baseline", async () => {
      await read();
      await lose(5);
      untilNoneArrives();
      await read();
      key.requests++;
      await read();
      expect(await isForeign()).toBe(true);
    });

    test("P20: whatever was answered before the clock was put back", async () => {
      for (let n = 0; n < 5; n++) await answered(key, "task");
      clock.advance(-60 * 60_000);
      await read();
      key.requests++;
      await read();
      expect(await isForeign()).toBe(true);
    });
  });
}
