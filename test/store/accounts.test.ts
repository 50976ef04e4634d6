import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import type { Endpoint } from "../../src/api/endpoints.js";
import type { Accounts } from "../../src/core/accounts.js";
import { lateMsMax } from "../../src/core/quota.js";
import { timeoutMs } from "../../src/core/send.js";
import { openAccounts } from "../../src/store/accounts.js";
import { ManualClock } from "../manual-clock.js";

const origin = "https://service.example";
let clock: ManualClock;
let accounts: Accounts;
let id: number;

beforeEach(async () => {
  clock = new ManualClock();
  accounts = openAccounts(":memory:", clock);
  id = (await accounts.accountOf(origin, "f1")).id;
});

async function send(endpoint: Endpoint = "task") {
  const reservation = await accounts.reserve(id, endpoint);
  if (!reservation.ticket) throw new Error("no place");
  return reservation.ticket;
}

test("a key that nobody has named yet gets the smallest plan's limits", async () => {
  expect(await accounts.quota(id)).toMatchObject({ minute: { limit: 30 }, day: { limit: 1_000 } });
});

test("P9: a request occupies the minute until 60 s after its response", async () => {
  await accounts.setLimits(id, { perMinute: 1, perDay: 100 });
  const ticket = await send();
  clock.advance(7_000);
  await accounts.answered(ticket);
  clock.advance(59_999);
  expect(await accounts.reserve(id, "task")).toMatchObject({ ticket: null, waitUntil: clock.now() + 1 });
  clock.advance(1);
  expect((await accounts.reserve(id, "task")).ticket).not.toBeNull();
});

test("P9: a request without a response occupies the minute for its timeout and the latest arrival more", async () => {
  await accounts.setLimits(id, { perMinute: 1, perDay: 100 });
  await send("generate");
  const until = clock.now() + timeoutMs.generate + lateMsMax + 60_000;
  expect(await accounts.reserve(id, "task")).toMatchObject({ ticket: null, waitUntil: until });
});

test("a request that was not sent gives its place back", async () => {
  await accounts.setLimits(id, { perMinute: 1, perDay: 100 });
  await accounts.release(await send());
  expect((await accounts.reserve(id, "task")).ticket).not.toBeNull();
});

test("the day's window holds when the minute is free again", async () => {
  await accounts.setLimits(id, { perMinute: 10, perDay: 2 });
  for (let n = 0; n < 2; n++) await accounts.answered(await send());
  const sent = clock.now();
  clock.advance(3_600_000);
  expect(await accounts.reserve(id, "task")).toMatchObject({ ticket: null, waitUntil: sent + 86_400_000 });
  expect(await accounts.quota(id)).toMatchObject({
    minute: { used: 0 },
    day: { used: 2, nextReleaseAt: sent + 86_400_000 },
  });
});

test("who has to wait is told for what", async () => {
  await accounts.setLimits(id, { perMinute: 1, perDay: 2 });
  await accounts.answered(await send());
  expect(await accounts.reserve(id, "task")).toMatchObject({ waitsFor: "minute" });
  clock.advance(60_000);
  await accounts.answered(await send());
  expect(await accounts.reserve(id, "task")).toMatchObject({ waitsFor: "day" });
  await accounts.silence(id, 5_000);
  expect(await accounts.reserve(id, "task")).toMatchObject({ waitsFor: "service" });
});

test("an unlimited plan never waits, but a 429 silences it too", async () => {
  await accounts.setLimits(id, { perMinute: null, perDay: null });
  for (let n = 0; n < 200; n++) await send();
  const { until } = await accounts.silence(id, 5_000);
  expect(await accounts.reserve(id, "task")).toMatchObject({ ticket: null, waitUntil: until });
  clock.advance(5_000);
  expect((await accounts.reserve(id, "task")).ticket).not.toBeNull();
});

test("P11: silences grow with each 429 in a row, and refusals in flight together are one", async () => {
  expect((await accounts.silence(id, null)).until - clock.now()).toBe(60_000);
  expect((await accounts.silence(id, null)).until - clock.now()).toBe(60_000);
  clock.advance(61_000);
  expect((await accounts.silence(id, null)).until - clock.now()).toBe(120_000);
});

test("P20: a clock that is put back by ten years stops nobody for ten years", async () => {
  await accounts.setLimits(id, { perMinute: 2, perDay: 5 });
  for (let n = 0; n < 2; n++) await accounts.answered(await send());
  await accounts.silence(id, 30_000);
  clock.advance(-10 * 365 * 86_400_000);
  const reservation = await accounts.reserve(id, "task");
  expect(reservation).toMatchObject({ ticket: null, waitUntil: clock.now() + 60_000 });
  clock.advance(60_000);
  expect((await accounts.reserve(id, "task")).ticket).not.toBeNull();
});

test("a replaced key of the same user goes on with the same ledger", async () => {
  await accounts.name(id, "user-1");
  await send();
  const fresh = await accounts.accountOf(origin, "f2");
  expect(fresh.id).not.toBe(id);
  await accounts.reserve(fresh.id, "me");
  const joined = await accounts.name(fresh.id, "user-1");
  expect(joined).toEqual({ id, origin, userId: "user-1" });
  expect((await accounts.accountOf(origin, "f2")).id).toBe(id);
  expect((await accounts.quota(id)).minute.used).toBe(2);
});

test("a key that answers for another user is refused, also where that user has an account of its own", async () => {
  await accounts.name(id, "user-1");
  const message = `expected user-1 at ${origin}, got user-2`;
  await expect(accounts.name(id, "user-2")).rejects.toThrow(message);
  const other = await accounts.accountOf(origin, "f2");
  await accounts.name(other.id, "user-2");
  await expect(accounts.name(id, "user-2")).rejects.toThrow(message);
  expect(await accounts.accountOf(origin, "f1")).toEqual({ id, origin, userId: "user-1" });
});

test("the same user id at another service is another account", async () => {
  await accounts.name(id, "user-1");
  const other = await accounts.accountOf("https://other.example", "f1");
  expect((await accounts.name(other.id, "user-1")).id).toBe(other.id);
  expect(other.id).not.toBe(id);
});

test("P9: whatever the latencies, no 60 s at the service hold more requests than the plan", async () => {
  const request = fc.record({
    wait: fc.nat(20_000),
    latency: fc.nat(30_000),
    arrival: fc.double({ min: 0, max: 1, noNaN: true }),
    answered: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      async (requests, limit) => {
        const world = new ManualClock();
        const ledger = openAccounts(":memory:", world);
        const account = await ledger.accountOf(origin, "f1");
        await ledger.setLimits(account.id, { perMinute: limit, perDay: null });
        const arrivals: number[] = [];
        const answers: { at: number; give(): Promise<void> }[] = [];
        const moveTo = async (time: number) => {
          for (const answer of answers.filter((other) => other.at <= time).sort((a, b) => a.at - b.at)) {
            world.advance(Math.max(0, answer.at - world.now()));
            await answer.give();
            answers.splice(answers.indexOf(answer), 1);
          }
          world.advance(Math.max(0, time - world.now()));
        };
        for (const { wait, latency, arrival, answered } of requests) {
          await moveTo(world.now() + wait);
          const { ticket } = await ledger.reserve(account.id, "task");
          if (!ticket) continue;
          // An answered request arrived before its answer; one without may arrive as late as is thought possible.
          const latest = answered ? latency : timeoutMs.task + lateMsMax;
          arrivals.push(world.now() + arrival * latest);
          if (answered) answers.push({ at: world.now() + latency, give: () => ledger.answered(ticket) });
        }
        arrivals.sort((a, b) => a - b);
        for (const [index, arrived] of arrivals.entries()) {
          const beyond = arrivals[index + limit];
          if (beyond !== undefined) expect(beyond - arrived).toBeGreaterThanOrEqual(60_000);
        }
        ledger.close();
      },
    ),
    { numRuns: 60 },
  );
});
