import { describe, expect, test } from "vitest";
import { planLimits } from "../../../src/api/plans.js";
import { forecastOf, type Outlook } from "../../../src/core/pace/forecast.js";
import { type DurationEstimate, durationEstimateOf, priorOf } from "../../../src/core/pace/pace.js";

const pace = (ms: number): DurationEstimate => ({ mean: Math.log(ms), spread: 0.2, finished: 30 });
const outlook = (change: Partial<Outlook>): Outlook => ({
  groups: [{ model: "m", items: 400, pace: pace(10_000) }],
  open: 0,
  limits: planLimits.Starter,
  plan: "Starter",
  usedToday: 0,
  usedNow: 0,
  isShortOfCredits: false,
  chainMs: 0,
  ...change,
});
const minutes = (ms: number) => ms / 60_000;
const larger = [
  { plan: "Pro", limits: planLimits.Pro },
  { plan: "Enterprise", limits: planLimits.Enterprise },
];

describe("what binds a run", () => {
  test("the minute, where many short generations share it; and the next plan would be twice as fast", () => {
    const found = forecastOf(outlook({}), larger);
    expect(found).toMatchObject({ requests: 812, binds: "minute", larger: { plan: "Pro" } });
    expect(minutes(found.ms)).toBeGreaterThan(26);
    expect(minutes(found.ms)).toBeLessThan(28);
    expect(found.larger?.ms ?? 0).toBeLessThan(0.55 * found.ms);
  });

  test("the minute, with what of it is used already: a set that fits into the rest is quick, another waits", () => {
    const ten = { groups: [{ model: "m", items: 10, pace: pace(1_000) }] };
    expect(forecastOf(outlook(ten)).ms).toBeLessThan(10_000);
    expect(forecastOf(outlook({ ...ten, usedNow: 28 })).ms).toBeGreaterThan(30_000);
  });

  test("the generation itself, where few take long; a larger plan changes nothing", () => {
    const found = forecastOf(outlook({ groups: [{ model: "m", items: 5, pace: pace(180_000) }] }), larger);
    expect(found).toMatchObject({ binds: "generation", larger: null });
    expect(minutes(found.ms)).toBeGreaterThan(3);
    expect(minutes(found.ms)).toBeLessThan(5);
  });

  test("on an unlimited plan the submits in flight at once: as the user has set them, or by plan", () => {
    const many = { groups: [{ model: "m", items: 8_000, pace: pace(1_000) }], limits: planLimits.Enterprise };
    const ms = (change: Partial<Outlook>) =>
      forecastOf(outlook({ ...many, plan: "Enterprise", ...change })).ms;
    const answers = (lanes: number) => (8_000 * 700) / lanes;
    expect(ms({})).toBeGreaterThan(answers(16));
    expect(ms({})).toBeLessThan(answers(16) + 5_000);
    expect(ms({ lanes: 64 })).toBeGreaterThan(answers(64));
    expect(ms({ lanes: 64 })).toBeLessThan(answers(64) + 5_000);
  });

  test("the longest chain, whose generations follow each other", () => {
    const few = { groups: [{ model: "m", items: 3, pace: pace(60_000) }] };
    expect(minutes(forecastOf(outlook({ ...few, chainMs: 180_000 })).ms)).toBe(3);
    expect(forecastOf(outlook({ chainMs: 180_000 })).ms).toBe(forecastOf(outlook({})).ms);
  });

  test("the day, with what of it is used already", () => {
    expect(forecastOf(outlook({ usedToday: 100 })).binds).toBe("minute");
    expect(forecastOf(outlook({ usedToday: 300 }))).toMatchObject({ binds: "day", ms: 86_400_000 });
    expect(forecastOf(outlook({ groups: [{ model: "m", items: 1_200, pace: pace(1_000) }] })).ms).toBe(
      2 * 86_400_000,
    );
  });

  test("the credits, where they do not reach for all", () => {
    expect(forecastOf(outlook({ isShortOfCredits: true })).binds).toBe("credits");
  });
});

test("tasks at the service need their polls, and no items need no requests", () => {
  expect(forecastOf(outlook({ groups: [], open: 10 }))).toMatchObject({ requests: 11, binds: "generation" });
  expect(forecastOf(outlook({ groups: [], open: 0 }))).toMatchObject({ requests: 0, ms: 0, larger: null });
});

test("models without a history do not make a run look long: what is not known of a model is the same for all its items", () => {
  const unseen = durationEstimateOf(priorOf("image"), [], []);
  const pro = { limits: planLimits.Pro, plan: "Pro" };
  const found = forecastOf(outlook({ groups: [{ model: "m", items: 60, pace: unseen }], ...pro }));
  // Its 122 requests need two whole minutes, and the models no more than that.
  expect(found.ms).toBeLessThan(2.1 * 60_000);
});

describe("the requests of a small set", () => {
  const unseen = durationEstimateOf(priorOf("image"), [], []);
  const each = (items: number, change: Partial<Outlook> = {}) =>
    forecastOf(outlook({ groups: [{ model: "m", items, pace: unseen }], ...change })).requests / items;
  const pro = { limits: planLimits.Pro, plan: "Pro" };

  test("are more for each item while slots are free for early polls, and fewer when many share them", () => {
    const found = [3, 10, 14, 30, 400].map((items) => each(items));
    expect(found.toSorted((a, b) => b - a)).toEqual(found);
    // By the bench: 3.9, 2.6, 2.1, 2.0 and 2.0.
    expect(found.map((value) => value.toFixed(1))).toEqual(["4.3", "3.0", "2.2", "2.1", "2.0"]);
  });

  test("are more on a plan with more of them, and have no part in how long it takes", () => {
    expect(each(20, pro)).toBeGreaterThan(1.3 * each(20));
    const known = forecastOf(outlook({ groups: [{ model: "m", items: 14, pace: pace(10_000) }] }));
    expect(known).toMatchObject({ binds: "generation" });
    expect(known.ms).toBeLessThan(30_000);
  });

  test("are those of each of its models", () => {
    const groups = [
      { model: "m", items: 3, pace: unseen },
      { model: "m", items: 3, pace: pace(60_000) },
    ];
    const { requests } = forecastOf(outlook({ groups }));
    expect(requests).toBeGreaterThan(2.03 * 6 + 1);
    expect(forecastOf(outlook({ groups: groups.toReversed() })).requests).toBe(requests);
  });
});

describe("the time of a run", () => {
  const seconds = (change: Partial<Outlook>) => forecastOf(outlook(change)).ms / 1_000;
  const long = (items: number) => ({ groups: [{ model: "m", items, pace: pace(300_000) }] });

  test("of one item is that of its submit, its generation and its answers", () => {
    expect(seconds({ groups: [{ model: "m", items: 1, pace: pace(10_000) }] })).toBeCloseTo(
      0.7 + 10 + 0.7,
      3,
    );
  });

  test("grows by a minute where one submit more has to wait for the next minute", () => {
    // Within a minute each submit takes as long as an answer.
    expect(seconds(long(31)) - seconds(long(30))).toBeGreaterThan(60.7 - 30 * 0.7);
    expect(seconds({ ...long(30), usedNow: 1 })).toBeGreaterThan(seconds(long(30)) + 39);
    expect(seconds({ ...long(29), usedNow: 1 })).toBeLessThan(seconds(long(30)) + 1);
    expect(seconds({ ...long(61), usedNow: 0 }) - seconds(long(60))).toBeGreaterThan(50);
  });

  test("grows with what is used of the minute, where the minute binds", () => {
    // 15 requests more in the last minute, which leave as fast as they are answered.
    expect(seconds({ usedNow: 15 }) - seconds({})).toBeCloseTo(15 * 0.7, 1);
    expect(seconds({ usedNow: 30 }) - seconds({})).toBeCloseTo(60.7, 1);
  });

  test("is whole minutes, however few requests the last one has", () => {
    const of = (items: number) => {
      const groups = [{ model: "m", items, pace: pace(1_000) }];
      return seconds({ groups, limits: planLimits.Pro, plan: "Pro" });
    };
    // 82 requests at 60 a minute: the last 22 leave a minute after the first ones were answered.
    expect(of(40)).toBeCloseTo(60.7 + 21 * 0.35 + 0.7, 1);
    expect(of(29)).toBeLessThan(30);
    expect(of(88)).toBeCloseTo(2 * 60.7 + 58 * 0.35 + 0.7, 1);
  });

  test("grows with the polls of the tasks at the service, where the minute binds", () => {
    expect(seconds({ open: 30 }) - seconds({})).toBeCloseTo(60.7 + 0.7, 0);
  });

  test("counts the longest generations first, in whatever order the manifest has them", () => {
    const groups = [
      { model: "m", items: 60, pace: pace(1_000) },
      { model: "m", items: 1, pace: pace(200_000) },
    ];
    expect(seconds({ groups })).toBe(seconds({ groups: groups.toReversed() }));
    // 124 requests: the last three leave in the fifth minute.
    expect(seconds({ groups })).toBeCloseTo(4 * 60.7 + 3 * 0.7 + 0.7, 1);
  });

  test("is that of the longest generation, where a used-up day is over sooner", () => {
    const found = forecastOf(
      outlook({
        groups: [{ model: "m", items: 1, pace: pace(30 * 3_600_000) }],
        usedToday: planLimits.Starter.perDay ?? 0,
      }),
    );
    expect(found).toMatchObject({ binds: "generation" });
    expect(found.ms).toBeGreaterThan(30 * 3_600_000);
  });

  test("is none without any request, whatever else is short", () => {
    const none = { groups: [], open: 0, chainMs: 5_000, isShortOfCredits: true };
    expect(forecastOf(outlook(none))).toEqual({ requests: 0, ms: 0, binds: "generation", larger: null });
  });
});

test("tasks at the service need their polls beside the requests of new items", () => {
  expect(forecastOf(outlook({ open: 10 })).requests).toBe(Math.ceil(2.03 * 400 + 1.03 * 10));
});

describe("a provider that does so many jobs at once", () => {
  const enterprise = { plan: "Enterprise", limits: planLimits.Enterprise };
  const exactly = (ms: number) => ({ ...pace(ms), spread: 0 });
  const provider = (atOnce: number, aheadMs: number | null, ...models: string[]) => ({
    atOnce,
    aheadMs,
    usualMs: new Map(models.map((model) => [model, null])),
  });
  const night = { ...enterprise, groups: [{ model: "m", items: 1_200, pace: exactly(30_000) }] };

  test("needs as many rounds as its places, after what it has to do already", () => {
    const ms = (...providers: Outlook["providers"] & object) =>
      forecastOf(outlook({ ...night, providers })).ms;
    expect(ms(provider(1, 0, "m"))).toBe(36_000_000);
    expect(ms(provider(3, null, "m"))).toBe(12_000_000);
    expect(ms(provider(7, 60_000, "m"))).toBe(172 * 30_000 + 60_000);
    expect(forecastOf(outlook({ ...night, providers: [provider(3, 0, "m")] })).binds).toBe("provider");
  });

  test("shares them among its models, and does nothing of the others", () => {
    const groups = [
      { model: "m", items: 10, pace: exactly(30_000) },
      { model: "n", items: 10, pace: exactly(90_000) },
      { model: "o", items: 10, pace: exactly(1_000) },
    ];
    const found = forecastOf(outlook({ ...enterprise, groups, providers: [provider(2, 0, "m", "n")] }));
    expect(found.ms).toBe(600_000);
    const others = forecastOf(outlook({ ...night, providers: [provider(1, 3_600_000, "n")] }));
    expect(others).toMatchObject({ binds: "generation" });
    expect(others.ms).toBeLessThan(120_000);
  });

  test("an average job takes longer than the median if a few take far longer", () => {
    const groups = [{ model: "m", items: 1_000, pace: { ...pace(30_000), spread: 0.4 } }];
    const { ms } = forecastOf(outlook({ ...enterprise, groups, providers: [provider(1, 0, "m")] }));
    expect(ms / 30_000_000).toBeCloseTo(Math.exp(0.08), 3);
  });

  test("does not bind where the requests of the account are fewer", () => {
    const { binds } = forecastOf(outlook({ providers: [provider(100, 0, "m")] }));
    expect(binds).toBe("minute");
  });
});
