import { describe, expect, test } from "vitest";
import {
  dayOf,
  freeInWindows,
  freeSlots,
  isLongWait,
  lanesOf,
  NoRequestsUntil,
  narrowed,
  nextSendAt,
  owedRequests,
  presumedEnd,
  type Quota,
  restMs,
  slotsWithin,
  slower,
  spacingMs,
  unprovenAtOnce,
  type Window,
  waitsFor,
} from "../../../src/core/quota/quota.js";

const now = Date.UTC(2026, 0, 1, 12);
const minute = 60_000;
const day = 24 * 60 * minute;
/** From one use of a slot to the next. */
const round = minute + 700;

const window = (limit: number | null, used: number, change: Partial<Window> = {}): Window => ({
  limit,
  used,
  nextFreeAt: now,
  nextReleaseAt: null,
  ...change,
});
const quota = (change: Partial<Quota> = {}): Quota => ({
  minute: window(30, 0),
  day: window(1_000, 0),
  releases: [],
  pacing: { spacingMs: 0, nextAt: 0 },
  owedElsewhere: 0,
  blockedUntil: null,
  ...change,
});
const unlimited = { minute: window(null, 5), day: window(null, 5) };

test("a request without an answer counts until its answer is given up, and for as long as it may still be on its way", () => {
  expect(presumedEnd("generate", now) - now).toBe(520_000);
  for (const endpoint of ["task", "models", "me"] as const)
    expect(presumedEnd(endpoint, now) - now).toBe(430_000);
});

test("a time that is not known exactly belongs to all days that it may be on, from the first to the last", () => {
  const at = { earliest: Date.UTC(2026, 0, 1, 23, 59), latest: Date.UTC(2026, 0, 2, 0, 1) };
  expect(dayOf(at)).toEqual({ from: Date.UTC(2026, 0, 1), to: Date.UTC(2026, 0, 3) });
  expect(dayOf({ earliest: now, latest: now })).toEqual({
    from: Date.UTC(2026, 0, 1),
    to: Date.UTC(2026, 0, 2),
  });
});

describe("P10: the pacing of an account", () => {
  test("the first three requests of an account go one by one, and later ones in pairs until the pacing is proven", () => {
    expect([0, 1, 2, 3, 4, 50].map(unprovenAtOnce)).toEqual([1, 1, 1, 2, 2, 2]);
  });

  test("a refusal that the quota ledger does not explain makes it slower, down to strict", () => {
    expect([slower("burst"), slower("paced"), slower("strict")]).toEqual(["paced", "strict", "strict"]);
  });

  test("all but a burst keep requests apart, so that two slots of each minute stay unused", () => {
    expect(spacingMs("paced", 30)).toBe(Math.ceil(minute / 28));
    expect(spacingMs("strict", 30)).toBe(spacingMs("paced", 30));
    expect(spacingMs("strict", 1)).toBe(minute);
    expect(spacingMs("burst", 30)).toBe(0);
    expect(spacingMs("strict", null)).toBe(0);
  });

  test("after a change nothing is sent for five spacings, and for a quarter of a minute at most", () => {
    expect(restMs("paced", 60)).toBe(5 * spacingMs("paced", 60));
    expect(restMs("strict", 2)).toBe(15_000);
    expect(restMs("burst", 2)).toBe(0);
  });
});

describe("P9: as many requests may be sent at once", () => {
  test("as the minute and the day have slots, whichever has fewer", () => {
    expect(freeSlots(quota({ minute: window(30, 12) }), now)).toBe(18);
    expect(freeSlots(quota({ day: window(1_000, 995) }), now)).toBe(5);
    expect(freeSlots(quota({ day: window(1_000, 1_002) }), now)).toBe(0);
    expect(freeInWindows(quota({ minute: window(30, 31), day: window(null, 0) }))).toBe(0);
    expect(freeSlots(quota(unlimited), now)).toBe(Number.POSITIVE_INFINITY);
  });

  test("none while the service asks for a pause, or before the pacing lets the next one go", () => {
    const until = (at: number) => freeSlots(quota({ blockedUntil: at }), now);
    expect([until(now + 1), until(now)]).toEqual([0, 30]);
    const paced = (nextAt: number) => freeSlots(quota({ pacing: { spacingMs: 2_000, nextAt } }), now);
    expect([paced(now + 1), paced(now)]).toEqual([0, 1]);
  });

  test("as the pacing allows while it is unproven, and never more than there are slots", () => {
    const atOnce = (used: number) =>
      freeSlots(quota({ minute: window(30, used), pacing: { spacingMs: 0, nextAt: 0, atOnce: 2 } }), now);
    expect([0, 28, 29, 30].map(atOnce)).toEqual([2, 2, 1, 0]);
  });
});

describe("how many requests can be sent within a time", () => {
  test("every free slot, and again each time a minute and an answer have passed", () => {
    const within = (...times: number[]) => slotsWithin(quota({ minute: window(30, 20) }), now, times);
    expect(within(0, round - 1, round, 2 * round)).toEqual([10, 10, 20, 30]);
  });

  test("used slots count from when they are free", () => {
    const used = quota({ minute: window(3, 3), releases: [now + 1_000, now + 1_000, now + 5_000] });
    expect(slotsWithin(used, now, [999, 1_000, 4_999, 5_000, 1_000 + round])).toEqual([0, 2, 2, 3, 5]);
    // One that should have been free already is free now.
    const late = quota({ minute: window(1, 1), releases: [now - 5_000] });
    expect(slotsWithin(late, now, [0, round - 1, round])).toEqual([1, 1, 2]);
  });

  test("none during a pause that the service asks for, and all from its end", () => {
    const silent = quota({
      minute: window(2, 1),
      releases: [now + 1_000],
      blockedUntil: now + 10_000,
    });
    expect(slotsWithin(silent, now, [0, 9_999, 10_000, 10_000 + round])).toEqual([0, 0, 2, 4]);
    expect(slotsWithin(quota({ blockedUntil: now - 1 }), now, [0])).toEqual([30]);
    const open = quota({ ...unlimited, blockedUntil: now + 10_000 });
    expect(slotsWithin(open, now, [9_999, 10_000])).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  test("no more than the day has left, and one for each spacing of the pacing", () => {
    expect(slotsWithin(quota({ day: window(100, 95) }), now, [0, round])).toEqual([5, 5]);
    expect(slotsWithin(quota({ day: window(100, 101) }), now, [0])).toEqual([0]);
    const paced = quota({ pacing: { spacingMs: 2_000, nextAt: now + 500 } });
    expect(slotsWithin(paced, now, [499, 500, 2_499, 2_500, 6_500])).toEqual([0, 1, 1, 2, 4]);
    const silent = quota({ pacing: { spacingMs: 2_000, nextAt: now }, blockedUntil: now + 3_000 });
    expect(slotsWithin(silent, now, [2_999, 3_000, 5_000])).toEqual([0, 1, 2]);
  });
});

describe("when the next request may be sent", () => {
  test("the latest of what the service, the pacing, the minute and the day require", () => {
    const nextAt = (change: Partial<Quota>) => nextSendAt(quota(change), now) - now;
    expect(nextAt({})).toBe(0);
    expect(nextAt({ blockedUntil: now + 9_000 })).toBe(9_000);
    expect(nextAt({ pacing: { spacingMs: 0, nextAt: now + 700 } })).toBe(700);
    expect(nextAt({ minute: window(30, 30, { nextFreeAt: now + 30_000 }) })).toBe(30_000);
    expect(nextAt({ day: window(100, 100, { nextFreeAt: now + 60 * minute }) })).toBe(60 * minute);
  });

  test("after others that go now, when the minute has a slot for one more", () => {
    const sendAfter = (begun: number, used: number) =>
      nextSendAt(
        quota({ minute: window(4, used), releases: [now + 1_000, now + 5_000].slice(0, used) }),
        now,
        begun,
      ) - now;
    expect([sendAfter(1, 2), sendAfter(2, 2), sendAfter(3, 2)]).toEqual([0, 1_000, 5_000]);
    // The slots of those that go now are free again a minute later at the soonest.
    expect(sendAfter(4, 2)).toBe(minute);
    expect(sendAfter(4, 0)).toBe(minute);
  });

  test("after others that go now, when the day has one more request", () => {
    const sendAfter = (begun: number, nextReleaseAt: number | null) =>
      nextSendAt(quota({ day: window(100, 98, { nextReleaseAt }) }), now, begun) - now;
    expect([sendAfter(1, now + 60 * minute), sendAfter(2, now + 60 * minute)]).toEqual([0, 60 * minute]);
    expect(sendAfter(2, null)).toBe(day);
  });

  test("after others that go now, a spacing later, or once answers can be expected of those that may go at once", () => {
    const sendAfter = (begun: number, pacing: Quota["pacing"]) =>
      nextSendAt(quota({ pacing }), now, begun) - now;
    expect(sendAfter(1, { spacingMs: 2_143, nextAt: now })).toBe(2_143);
    const unproven = { spacingMs: 0, nextAt: 0, atOnce: 2 };
    expect([sendAfter(1, unproven), sendAfter(2, unproven), sendAfter(3, unproven)]).toEqual([
      0, 2_000, 2_000,
    ]);
    expect(sendAfter(2, { spacingMs: 0, nextAt: now + 300 })).toBe(300);
  });
});

test("P12: the day keeps one request for each open task, and two for each unanswered request", () => {
  expect(owedRequests({ submitting: 1, processing: 10, overdue: 100, unknown: 1_000 })).toBe(2_111);
});

describe("what a request waits for", () => {
  test("the service, if it asks for a pause; else the day, if that is used up; else the minute; else its place in the pacing", () => {
    const full = quota({ minute: window(30, 30), day: window(100, 100) });
    expect(waitsFor({ ...full, blockedUntil: now + 1 }, now)).toBe("service");
    expect(waitsFor({ ...full, blockedUntil: now }, now)).toBe("day");
    expect(waitsFor({ ...full, day: window(100, 99) }, now)).toBe("minute");
    const open = quota({ minute: window(30, 29), day: window(100, 98) });
    expect(waitsFor(open, now)).toBe("pacing");
    expect(waitsFor(open, now, 1)).toBe("minute");
    expect(waitsFor(open, now, 2)).toBe("day");
  });

  test("is long if it is the day, or a pause of more than half an hour", () => {
    expect(isLongWait("day", 1)).toBe(true);
    expect(isLongWait("service", 30 * minute)).toBe(false);
    expect(isLongWait("service", 30 * minute + 1)).toBe(true);
    for (const other of ["minute", "pacing"] as const) expect(isLongWait(other, day)).toBe(false);
  });

  test("is told with the time at which it ends", () => {
    expect(new NoRequestsUntil("day", now)).toMatchObject({
      name: "NoRequestsUntil",
      message: "the day's requests are used up until 2026-01-01 12:00 UTC",
    });
    expect(new NoRequestsUntil("service", now).message).toBe(
      "the service asks for no more requests until 2026-01-01 12:00 UTC (`bulkgen account --forget-pause` asks it again now)",
    );
  });
});

describe("the user's own limits", () => {
  const plan = { perMinute: 30, perDay: 1_000 };

  test("narrow those of the plan, and never widen them", () => {
    expect(narrowed(plan, {})).toEqual(plan);
    expect(narrowed(plan, { rpm: 10, rpd: 2_000 })).toEqual({ perMinute: 10, perDay: 1_000 });
    expect(narrowed({ perMinute: null, perDay: null }, { rpm: 10 })).toEqual({ perMinute: 10, perDay: null });
  });

  test("may be a share of the plan's: rounded down, at least one request, and nothing where the plan has no limit", () => {
    expect(narrowed(plan, { share: 25 })).toEqual({ perMinute: 7, perDay: 250 });
    expect(narrowed(plan, { share: 1 })).toEqual({ perMinute: 1, perDay: 10 });
    expect(narrowed({ perMinute: null, perDay: null }, { share: 25 })).toEqual({
      perMinute: null,
      perDay: null,
    });
    expect(narrowed(plan, { share: 50, rpm: 20, rpd: 100 })).toEqual({ perMinute: 15, perDay: 100 });
  });
});

test("a plan has its number of lanes, and one that is not known has one", () => {
  expect(["Starter", "Pro", "Enterprise", "Gigantic", "toString"].map(lanesOf)).toEqual([1, 2, 16, 1, 1]);
});
