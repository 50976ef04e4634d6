import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import type { Endpoint } from "../../../src/api/endpoints.js";
import { credits } from "../../../src/core/money.js";
import type { Caller } from "../../../src/core/ports/accounts.js";
import type { Ticket } from "../../../src/core/ports/send.js";
import { lateMsMax, timeoutMs } from "../../../src/core/quota/quota.js";
import type { Accounts } from "../../../src/store/accounts/accounts.js";
import type { SpendLog } from "../../../src/store/accounts/spend-log.js";
import { ManualClock } from "../../manual-clock.js";
import { judgementOf } from "../judgement-fixture.js";
import type { OpenDatabase } from "./open.js";

export function accountsSuite(open: OpenDatabase, numRuns: number): void {
  const origin = "https://service.example";
  let clock: ManualClock;
  let accounts: Accounts;
  let id: number;
  let own: Caller;

  beforeEach(async () => {
    clock = new ManualClock();
    accounts = (await open(clock)).accounts;
    id = (await accounts.accountOf(origin, "f1")).id;
    own = { accountId: id, fingerprint: "f1" };
  });

  async function send(endpoint: Endpoint = "task") {
    const reservation = await accounts.reserve(own, endpoint);
    if (!reservation.ticket) throw new Error("no place");
    return reservation.ticket;
  }

  test("a key of unknown plan gets the smallest plan's limits", async () => {
    expect(await accounts.quota(id)).toMatchObject({ minute: { limit: 30 }, day: { limit: 1_000 } });
  });

  test("P9: a request occupies the minute until 60 s after its response", async () => {
    await accounts.setLimits(id, { perMinute: 1, perDay: 100 });
    const ticket = await send();
    clock.advance(7_000);
    await accounts.answered(ticket);
    clock.advance(59_999);
    expect(await accounts.reserve(own, "task")).toMatchObject({ ticket: null, waitUntil: clock.now() + 1 });
    clock.advance(1);
    expect((await accounts.reserve(own, "task")).ticket).not.toBeNull();
  });

  test("P9: a request without a response occupies the minute for its timeout and the latest arrival more", async () => {
    await accounts.setLimits(id, { perMinute: 1, perDay: 100 });
    await send("generate");
    const until = clock.now() + timeoutMs.generate + lateMsMax + 60_000;
    expect(await accounts.reserve(own, "task")).toMatchObject({ ticket: null, waitUntil: until });
  });

  test("a request that was not sent gives its place back", async () => {
    await accounts.setLimits(id, { perMinute: 1, perDay: 100 });
    await accounts.release(await send());
    expect((await accounts.reserve(own, "task")).ticket).not.toBeNull();
  });

  test("the day's window holds when the minute is free again", async () => {
    await accounts.setLimits(id, { perMinute: 10, perDay: 2 });
    for (let n = 0; n < 2; n++) await accounts.answered(await send());
    const sent = clock.now();
    clock.advance(3_600_000);
    expect(await accounts.reserve(own, "task")).toMatchObject({ ticket: null, waitUntil: sent + 86_400_000 });
    expect(await accounts.quota(id)).toMatchObject({
      minute: { used: 0 },
      day: { used: 2, nextReleaseAt: sent + 86_400_000 },
    });
  });

  test("a caller that has to wait is told why", async () => {
    await accounts.setLimits(id, { perMinute: 1, perDay: 2 });
    await accounts.answered(await send());
    expect(await accounts.reserve(own, "task")).toMatchObject({ waitsFor: "minute" });
    clock.advance(60_000);
    await accounts.answered(await send());
    expect(await accounts.reserve(own, "task")).toMatchObject({ waitsFor: "day" });
    await accounts.silence(id, 5_000);
    expect(await accounts.reserve(own, "task")).toMatchObject({ waitsFor: "service" });
  });

  test("an unlimited plan never waits, but a 429 silences it too", async () => {
    await accounts.setLimits(id, { perMinute: null, perDay: null });
    for (let n = 0; n < 200; n++) await send();
    const { until } = await accounts.silence(id, 5_000);
    expect(await accounts.reserve(own, "task")).toMatchObject({ ticket: null, waitUntil: until });
    clock.advance(5_000);
    expect((await accounts.reserve(own, "task")).ticket).not.toBeNull();
  });

  test("where nothing limits, only requests without an answer are kept, and all are counted for the key", async () => {
    await accounts.setLimits(id, { perMinute: null, perDay: null });
    expect(await accounts.counted(own, { requests: 0, over: 0 })).toBe(0);
    const tickets = await Promise.all(Array.from({ length: 50 }, () => send()));
    expect((await accounts.quota(id)).day.used).toBe(50);
    for (const ticket of tickets.slice(1)) await accounts.answered(ticket);
    expect((await accounts.quota(id)).day.used).toBe(1);
    const { over } = await accounts.past(own);
    expect(over).toBe(49);
    expect(await accounts.counted(own, { requests: 49, over })).toBe(0);
    expect(await accounts.counted(own, { requests: 52, over })).toBe(3);
  });

  test("P9: a number of the ledger is never used again, so that a late answer ends no other request", async () => {
    await accounts.setLimits(id, { perMinute: null, perDay: null });
    const first = await send();
    await accounts.answered(first);
    const second = await send();
    expect(second.id).not.toBe(first.id);
    await accounts.answered(first);
    expect((await accounts.quota(id)).day.used).toBe(1);
  });

  test("the user's own limits hold before the service has told the plan, and never widen it", async () => {
    await accounts.setLimits(id, { perMinute: null, perDay: 1_000 });
    await accounts.narrowLimits(id, { rpm: 4, rpd: 5_000 });
    const { minute, day } = await accounts.quota(id);
    expect([minute.limit, day.limit]).toEqual([4, 1_000]);
    await accounts.narrowLimits(id, {});
    expect((await accounts.quota(id)).minute.limit).toBeNull();
  });

  test("P11: silences grow with each 429 in a row, and refusals in flight together are one", async () => {
    expect((await accounts.silence(id, null)).until - clock.now()).toBe(60_000);
    expect((await accounts.silence(id, null)).until - clock.now()).toBe(60_000);
    clock.advance(61_000);
    expect((await accounts.silence(id, null)).until - clock.now()).toBe(120_000);
  });

  test("P11: a silence of three days is kept in full, also by who asks in between", async () => {
    const { until } = await accounts.silence(id, 3 * 86_400_000);
    for (let hour = 0; hour < 3 * 24; hour++) {
      expect(await accounts.reserve(own, "task")).toMatchObject({ ticket: null, waitUntil: until });
      clock.advance(3_600_000);
    }
    expect((await accounts.reserve(own, "task")).ticket).not.toBeNull();
  });

  test("P11: a 429 that comes again and again is waited out for longer each time, whatever it asks for", async () => {
    // Without a minute's limit there is no pacing to change.
    await accounts.setLimits(id, { perMinute: null, perDay: null });
    const waits: number[] = [];
    for (let n = 0; n < 7; n++) {
      await accounts.answered(await send(), true);
      const { until } = await accounts.silence(id, 0);
      waits.push((until - clock.now()) / 1_000);
      clock.advance(until - clock.now());
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 60, 120]);
  });

  test("P11: an answer ends the row of 429s, if it was sent after the silence", async () => {
    await accounts.setLimits(id, { perMinute: null, perDay: null });
    const early = await send();
    for (let n = 0; n < 3; n++) {
      await accounts.silence(id, 0);
      clock.advance(4_000);
    }
    await accounts.answered(early);
    expect((await accounts.silence(id, 0)).until - clock.now()).toBe(8_000);
    clock.advance(8_000);
    await accounts.answered(await send());
    expect((await accounts.silence(id, 0)).until - clock.now()).toBe(1_000);
  });

  test("P20: after the clock was set back, a silence starts again and is no longer than before", async () => {
    await accounts.silence(id, 3 * 86_400_000);
    clock.advance(-10 * 365 * 86_400_000);
    expect((await accounts.quota(id)).blockedUntil).toBe(clock.now() + 3 * 86_400_000);
  });

  test("P20: slots come free after the clock was set back, also for a caller that only reads the windows", async () => {
    await accounts.setLimits(id, { perMinute: 2, perDay: 5 });
    for (let n = 0; n < 2; n++) await accounts.answered(await send());
    clock.advance(-10 * 365 * 86_400_000);
    expect((await accounts.quota(id)).minute.nextFreeAt).toBe(clock.now() + 60_000);
  });

  test("P20: a clock that is set back by ten years does not block requests for ten years", async () => {
    await accounts.setLimits(id, { perMinute: 2, perDay: 5 });
    for (let n = 0; n < 2; n++) await accounts.answered(await send());
    await accounts.silence(id, 30_000);
    clock.advance(-10 * 365 * 86_400_000);
    const reservation = await accounts.reserve(own, "task");
    expect(reservation).toMatchObject({ ticket: null, waitUntil: clock.now() + 60_000 });
    clock.advance(60_000);
    expect((await accounts.reserve(own, "task")).ticket).not.toBeNull();
  });

  describe("P20: after the clock was put back by ten years", () => {
    const back = () => clock.advance(-10 * 365 * 86_400_000);
    const days = (count: number) => clock.advance(count * 86_400_000);

    test("what a run owed that never comes again is kept free for a day, not for ten years", async () => {
      await accounts.setLimits(id, { perMinute: 10, perDay: 50 });
      await accounts.owes(id, { claimant: "gone", requests: 40 });
      back();
      expect((await accounts.quota(id, "here")).owedElsewhere).toBe(40);
      days(1);
      expect((await accounts.quota(id, "here")).owedElsewhere).toBe(0);
    });

    test("P10: a pacing that was stepped down is kept for a month, not for ten years", async () => {
      await accounts.setLimits(id, { perMinute: 10, perDay: null });
      for (let n = 0; n < 3; n++) await accounts.answered(await send());
      expect((await accounts.silence(id, 1_000)).slowed).toBe("paced");
      back();
      expect((await accounts.quota(id)).pacing.spacingMs).toBe(7_500);
      days(30);
      expect((await accounts.quota(id)).pacing.spacingMs).toBe(7_500);
      days(1);
      expect((await accounts.quota(id)).pacing.spacingMs).toBe(0);
    });

    test("P11: a 429 on a request that was sent before prolongs no silence by ten years", async () => {
      const ticket = await send();
      await accounts.silence(id, 60_000);
      back();
      await accounts.answered(ticket, true);
      const { until } = await accounts.silence(id, 30_000);
      expect(until).toBe(clock.now() + 60_000);
      expect((await accounts.quota(id)).blockedUntil).toBe(until);
    });

    test("P10: requests in flight delay the pacing by seconds", async () => {
      await accounts.setLimits(id, { perMinute: 10, perDay: null });
      for (let n = 0; n < 3; n++) await accounts.answered(await send());
      await accounts.silence(id, 1_000);
      clock.advance(60_000);
      const ticket = await send();
      back();
      await accounts.answered(ticket);
      expect((await accounts.quota(id)).pacing.nextAt).toBe(clock.now() + 7_500);
    });

    test("P9: what was answered while it was ahead has its place for minutes", async () => {
      const ticket = await send("generate");
      clock.advance(10 * 365 * 86_400_000);
      await accounts.answered(ticket);
      back();
      expect((await accounts.quota(id)).minute.used).toBe(1);
      clock.advance(timeoutMs.generate + lateMsMax + 2 * 60_000);
      expect((await accounts.quota(id)).minute.used).toBe(0);
    });

    test("requests of others that are found are held for a day", async () => {
      await accounts.setLimits(id, { perMinute: 10, perDay: 50 });
      await accounts.counted(own, { requests: 100, over: 0 });
      back();
      expect(await accounts.counted(own, { requests: 130, over: 0 })).toBe(31);
      expect((await accounts.quota(id)).day.used).toBe(31);
      days(1);
      expect((await accounts.quota(id)).day.used).toBe(0);
    });
  });

  test("P9: an answer that came after the clock was set ahead frees the place of no other request", async () => {
    const ticket = await send();
    clock.advance(10 * 365 * 86_400_000);
    await send();
    await accounts.answered(ticket);
    clock.advance(60_000);
    expect((await accounts.quota(id)).minute.used).toBe(1);
  });

  test("a replaced key of the same user continues with the same ledger", async () => {
    await accounts.name(id, "user-1");
    await send();
    const fresh = await accounts.accountOf(origin, "f2");
    expect(fresh.id).not.toBe(id);
    await accounts.reserve({ accountId: fresh.id, fingerprint: "f2" }, "me");
    const joined = await accounts.name(fresh.id, "user-1");
    expect(joined).toEqual({ id, origin, userId: "user-1" });
    expect((await accounts.accountOf(origin, "f2")).id).toBe(id);
    expect((await accounts.quota(id)).minute.used).toBe(2);
  });

  test("a key that answers for another user is refused, also if that user has an account here", async () => {
    await accounts.name(id, "user-1");
    const message = `expected user-1 at ${origin}, got user-2`;
    await expect(accounts.name(id, "user-2")).rejects.toThrow(message);
    const other = await accounts.accountOf(origin, "f2");
    await accounts.name(other.id, "user-2");
    await expect(accounts.name(id, "user-2")).rejects.toThrow(message);
    expect(await accounts.accountOf(origin, "f1")).toEqual({ id, origin, userId: "user-1" });
  });

  test("P5: what one workspace writes in a key's spend log, a verdict too, moves the number by which others see that there is news", async () => {
    const [one, other] = ["here", "elsewhere"].map((workspace) =>
      accounts.spendLog({ origin, fingerprint: "f1", workspace }),
    ) as [SpendLog, SpendLog];
    const entry = await one.intend({ itemKey: "k", price: credits(4), at: clock.now() });
    const steps = [
      () => one.answered(entry, { outcome: "unknown", completeError: false }),
      () => one.read({ used: credits(0), requests: 1, over: 0, servedAt: null }),
      async () => {
        const verdicts = [{ entry, verdict: "undecided", evidence: "", seq: null } as const];
        await one.keep(judgementOf(verdicts), await one.seq());
      },
      () => one.polled(entry, { task: "open" }),
    ];
    for (const step of steps) {
      const before = await other.seq();
      expect(await other.seq()).toBe(before);
      await step();
      expect(await other.seq()).toBeGreaterThan(before);
    }
  });

  test("the same user id at another service is another account", async () => {
    await accounts.name(id, "user-1");
    const other = await accounts.accountOf("https://other.example", "f1");
    expect((await accounts.name(other.id, "user-1")).id).toBe(other.id);
    expect(other.id).not.toBe(id);
  });

  test("P9: whatever the latencies, no 60 s at the service hold more requests than the plan", {
    tags: ["fuzz"],
  }, async () => {
    const request = fc.record({
      wait: fc.nat(20_000),
      latency: fc.nat(30_000),
      arrival: fc.double({ min: 0, max: 1, noNaN: true }),
      answered: fc.boolean(),
    });
    let cases = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 2, maxLength: 24 }),
        fc.integer({ min: 1, max: 4 }),
        async (requests, limit) => {
          const account = await accounts.accountOf(`https://service-${++cases}.example`, "f1");
          const caller = { accountId: account.id, fingerprint: "f1" };
          await accounts.setLimits(account.id, { perMinute: limit, perDay: null });
          const arrivals: number[] = [];
          const answers: { at: number; give(): Promise<void> }[] = [];
          const moveTo = async (time: number) => {
            for (const answer of answers.filter((other) => other.at <= time).sort((a, b) => a.at - b.at)) {
              clock.advance(Math.max(0, answer.at - clock.now()));
              await answer.give();
              answers.splice(answers.indexOf(answer), 1);
            }
            clock.advance(Math.max(0, time - clock.now()));
          };
          for (const { wait, latency, arrival, answered } of requests) {
            await moveTo(clock.now() + wait);
            const { ticket } = await accounts.reserve(caller, "task");
            if (!ticket) continue;
            // An answered request arrived before its answer; one without may arrive as late as is thought possible.
            const latest = answered ? latency : timeoutMs.task + lateMsMax;
            arrivals.push(clock.now() + arrival * latest);
            if (answered) answers.push({ at: clock.now() + latency, give: () => accounts.answered(ticket) });
          }
          arrivals.sort((a, b) => a - b);
          for (const [index, arrived] of arrivals.entries()) {
            const beyond = arrivals[index + limit];
            if (beyond !== undefined && beyond - arrived < 60_000)
              throw new Error(`${limit + 1} requests within ${beyond - arrived} ms`);
          }
        },
      ),
      { numRuns },
    );
  });

  describe("P10: pacings", () => {
    /** Sends and has answered so many requests within a second. */
    const burst = async (count: number) => {
      for (let n = 0; n < count; n++) await accounts.answered(await send());
    };

    /** How many may leave at this moment. */
    const atOnce = async () => {
      const tickets: Ticket[] = [];
      for (;;) {
        const { ticket } = await accounts.reserve(own, "task");
        if (ticket === null) break;
        tickets.push(ticket);
      }
      for (const ticket of tickets) await accounts.answered(ticket);
      return tickets.length;
    };

    test("until a service has accepted some minutes of bursts, two requests are in flight together, and at first one", async () => {
      expect(await atOnce()).toBe(1);
      expect(await atOnce()).toBe(1);
      for (let n = 2; n < 88; n += 2) {
        clock.advance(5_000);
        expect(await atOnce()).toBe(2);
      }
      clock.advance(61_000);
      expect(await atOnce()).toBe(30);
    });

    test("where a burst was refused a month ago, the next one is tried with as much care", async () => {
      for (let n = 0; n < 200; n++) {
        clock.advance(3_000);
        await burst(1);
      }
      expect((await accounts.silence(id, 1_000)).slowed).toBe("paced");
      clock.advance(31 * 86_400_000);
      expect(await atOnce()).toBe(2);
    });

    test("a missing answer delays others only briefly, and they are told for how long", async () => {
      await burst(3);
      await send();
      clock.advance(500);
      await send();
      expect(await accounts.reserve(own, "task")).toMatchObject({
        ticket: null,
        waitUntil: clock.now() + 1_500,
        waitsFor: "pacing",
      });
      clock.advance(1_500);
      await send();
    });

    test("after a step down nothing is sent for a moment, also where the service would take it sooner", async () => {
      await burst(5);
      const { until } = await accounts.silence(id, 1_000);
      expect(until - clock.now()).toBe(5 * Math.ceil(60_000 / 28));
      clock.advance(60_000);
      await accounts.setLimits(id, { perMinute: 4, perDay: 100 });
      await burst(1);
      clock.advance(31_000);
      await burst(1);
      expect((await accounts.silence(id, 1_000)).until - clock.now()).toBe(15_000);
    });

    test("a 429 within the limits steps the account down, and it is remembered", async () => {
      await burst(5);
      expect(await accounts.silence(id, 1_000)).toMatchObject({ slowed: "paced" });
      expect(await accounts.silence(id, 1_000)).toMatchObject({ slowed: null });
      clock.advance(61_000);
      await accounts.answered(await send());
      const spacing = Math.ceil(60_000 / 28);
      expect(await accounts.reserve(own, "task")).toMatchObject({
        ticket: null,
        waitUntil: clock.now() + spacing,
        waitsFor: "pacing",
      });
      clock.advance(spacing);
      await burst(1);
      expect(await accounts.silence(id, 1_000)).toMatchObject({ slowed: "strict" });
    });

    test("strict waits from the answer, not from the sending", async () => {
      await burst(2);
      await accounts.silence(id, 1_000);
      for (let n = 0; n < 2; n++) {
        clock.advance(11_000);
        await burst(1);
      }
      expect((await accounts.silence(id, 1_000)).slowed).toBe("strict");
      clock.advance(600_000);
      const ticket = await send();
      expect(await accounts.reserve(own, "task")).toMatchObject({ ticket: null });
      clock.advance(5_000);
      await accounts.answered(ticket);
      expect(await accounts.reserve(own, "task")).toMatchObject({
        waitUntil: clock.now() + Math.ceil(60_000 / 28),
      });
    });

    test("a single request, a whole day's silence and an unlimited plan prove nothing about the pacing", async () => {
      await burst(1);
      expect((await accounts.silence(id, 1_000)).slowed).toBeNull();
      clock.advance(700_000);
      await burst(5);
      expect((await accounts.silence(id, 3 * 86_400_000)).slowed).toBeNull();
      const other = (await accounts.accountOf("https://other.example", "f1")).id;
      await accounts.setLimits(other, { perMinute: null, perDay: null });
      for (let n = 0; n < 5; n++) await accounts.reserve({ accountId: other, fingerprint: "f1" }, "task");
      expect((await accounts.silence(other, 1_000)).slowed).toBeNull();
    });
  });

  describe("P12: what other runs of the account owe to their open tasks", () => {
    const claim = (claimant: string, requests: number) => ({ claimant, requests });

    test("a submit leaves them their requests of the day", async () => {
      await accounts.setLimits(id, { perMinute: 30, perDay: 10 });
      await accounts.owes(id, claim("a", 7));
      expect((await accounts.quota(id, "a")).owedElsewhere).toBe(0);
      expect((await accounts.quota(id, "b")).owedElsewhere).toBe(7);
      expect(await accounts.reserve(own, "generate", claim("b", 3))).toMatchObject({
        ticket: null,
        waitsFor: "reserve",
      });
      expect((await accounts.reserve(own, "generate", claim("b", 2))).ticket).not.toBeNull();
      expect(await accounts.reserve(own, "generate", claim("a", 8))).toMatchObject({ ticket: null });
      await accounts.owes(id, claim("b", 0));
      expect((await accounts.quota(id, "a")).owedElsewhere).toBe(0);
      clock.advance(2_000);
      expect((await accounts.reserve(own, "task")).ticket).not.toBeNull();
    });

    test("is forgotten after a day without news, so that a deleted folder does not block others forever", async () => {
      await accounts.owes(id, claim("a", 900));
      clock.advance(86_400_001);
      expect((await accounts.quota(id, "b")).owedElsewhere).toBe(0);
    });
  });

  test("the highest charge of each group counts until its model's list price rises above it", async () => {
    const [drawn, sketched, sung] = ['["paint",[]]', '["paint",[["mood","quick"]]]', '["sing",[]]'] as const;
    const listed = (paint: number) =>
      accounts.listed(
        id,
        new Map([
          ["paint", credits(paint)],
          ["sing", credits(9)],
        ]),
      );
    await listed(4);
    for (const [group, amount] of [
      [drawn, 6],
      [drawn, 5],
      [sketched, 3],
      [sung, 2],
    ] as const)
      await accounts.charged(id, group, credits(amount));
    const charges = [
      [drawn, credits(6)],
      [sketched, credits(3)],
      [sung, credits(2)],
    ] as const;
    await listed(4);
    expect(await accounts.highestCharges(id)).toEqual(new Map(charges));
    await listed(2);
    expect(await accounts.highestCharges(id)).toEqual(new Map(charges));
    await listed(5);
    expect(await accounts.highestCharges(id)).toEqual(new Map([charges[0], charges[2]]));
    await accounts.charged(id, sketched, credits(4));
    await listed(5);
    expect(await accounts.highestCharges(id)).toEqual(
      new Map([charges[0], [sketched, credits(4)], charges[2]]),
    );
  });

  test("how long generations took is kept for the service, the newest 200 of each model and params", async () => {
    for (let n = 0; n < 205; n++) await accounts.lasted(id, { model: "m", group: "g" }, 1_000 + n);
    await accounts.lasted(id, { model: "other", group: "o" }, 5);
    const known = await accounts.durations(id, ["m"]);
    expect(known).toHaveLength(200);
    expect(known[0]?.ms).toBe(1_005);
    const elsewhere = await accounts.accountOf("https://other.example", "f1");
    expect(await accounts.durations(elsewhere.id, ["m"])).toEqual([]);
  });
}
