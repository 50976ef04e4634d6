import { describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import type { Sum } from "../../src/plan/cost.js";
import type { PlanInput } from "../../src/plan/plan.js";
import { diskWarning, expectedFiles, requestsOf, usualMs } from "../../src/plan/requests.js";
import { me } from "./account.js";

const sum = (change: Partial<Sum> = {}): Sum => ({
  group: 0,
  model: "paint",
  category: "image",
  name: '["paint",[]]',
  listed: credits(4),
  items: 3,
  due: 3,
  price: credits(4),
  credits: credits(12),
  ...change,
});
const now = Date.UTC(2026, 10, 20);
const input = (change: Partial<PlanInput> = {}) =>
  ({ me: me(), now, sandbox: false, ...change }) as PlanInput;
const nothing = { open: 0, isShortOfCredits: false, chainMs: 0 };
const needs = (sums: Sum[], change: Partial<PlanInput> = {}, work = {}) =>
  requestsOf({ sums, ...nothing, ...work }, input(change));
const on = (plan: string) => ({ me: me(1_000, { plan }) });

describe("the requests of a run", () => {
  test("are by the account's plan, of which an unknown one has the least limits and one lane", () => {
    expect(needs([sum()], on("Pro"), { open: 2 })).toMatchObject({
      atLeast: 8,
      plan: "Pro",
      perMinute: 60,
      perDay: 10_000,
      lanes: 2,
    });
    expect(needs([sum()], on("Enterprise"))).toMatchObject({ perMinute: null, perDay: null, lanes: 16 });
    expect(needs([sum()], on("Gigantic"))).toMatchObject({ plan: "Gigantic", perMinute: 30, lanes: 1 });
    expect(needs([sum()], { me: me(0, null) })).toMatchObject({ plan: null, perMinute: 30, lanes: 1 });
  });

  test("go in so many lanes as the user says", () => {
    expect(needs([sum()], { ...on("Pro"), lanes: 5 }).lanes).toBe(5);
    const many = [sum({ due: 5_000, items: 5_000 })];
    const ms = (lanes: number) => needs(many, { ...on("Enterprise"), lanes }).forecast.ms;
    expect(ms(4)).toBeGreaterThan(3 * ms(16));
  });

  test("end when the forecast says, and never where there are none", () => {
    const { forecast, finishAt } = needs([sum()]);
    expect(finishAt).toBe(now + forecast.ms);
    expect(needs([]).finishAt).toBeNull();
    expect(needs([sum({ due: 0 })]).finishAt).toBeNull();
  });

  test("are told for the larger plan that would be faster, with the user's own limits on it", () => {
    const many = [sum({ due: 400, items: 400 })];
    expect(needs(many).forecast.larger?.plan).toBe("Pro");
    expect(needs(many, on("Pro")).forecast.larger?.plan).toBe("Enterprise");
    expect(needs(many, on("Enterprise")).forecast.larger).toBeNull();
    expect(needs(many, { ownLimits: { rpm: 30 } }).forecast.larger).toBeNull();
  });

  test("that are used already, and a share of the limits, make it take longer", () => {
    const many = [sum({ due: 100, items: 100 })];
    const ms = (change: Partial<PlanInput>) => needs(many, change).forecast.ms;
    expect(ms({ usedNow: 20 })).toBeGreaterThan(ms({}));
    expect(ms({ usedToday: 999 })).toBe(86_400_000);
    expect(ms({ ownLimits: { share: 50 } })).toBeGreaterThan(1.9 * ms({}));
  });

  test("of models without a history take a time that is a guess", () => {
    const pace = (group: string) => ({
      mean: Math.log(9_000),
      spread: 0.3,
      finished: group.includes("paint") ? 3 : 0,
    });
    const other = sum({ model: "film", name: '["film",[]]', category: "video" });
    expect(needs([sum(), other], { pace }).forecast.guessed).toEqual({
      models: ["film"],
      areAll: false,
      sandbox: false,
    });
    expect(needs([other], { pace, sandbox: true }).forecast.guessed).toEqual({
      models: ["film"],
      areAll: true,
      sandbox: true,
    });
    expect(needs([sum()], { pace }).forecast).not.toHaveProperty("guessed");
    expect(needs([sum({ due: 0 }), other], { pace }).forecast.guessed?.areAll).toBe(true);
  });
});

test("a generation usually takes as long as its price group's did, or as its category's do", () => {
  expect(usualMs(sum(), input())).toBeCloseTo(10_000);
  expect(usualMs(sum({ category: "video" }), input())).toBeCloseTo(120_000);
  const pace = () => ({ mean: Math.log(7_000), spread: 0.3, finished: 3 });
  expect(usualMs(sum(), input({ pace }))).toBeCloseTo(7_000);
});

describe("the files of a run", () => {
  const sizes = [
    { model: "paint", category: "image", items: 4, files: 8, bytes: 4_000 },
    { model: "edit", category: "image", items: 6, files: 6, bytes: 60_000 },
    { model: "score", category: "audio", items: 0, files: 0, bytes: 0 },
  ];

  test("are as many and as large as those of the model, else of its category", () => {
    expect(expectedFiles([sum()], sizes)).toEqual({ files: 6, bytes: 3_000, unknown: [] });
    expect(expectedFiles([sum({ model: "draw" })], sizes)).toEqual({ files: 4, bytes: 19_200, unknown: [] });
  });

  test("are one for each item where nothing is known, and each such model is named once", () => {
    const film = sum({ model: "film", category: "video" });
    expect(expectedFiles([film, sum(), { ...film, group: 1 }], sizes)).toEqual({
      files: 12,
      bytes: 3_000,
      unknown: ["film"],
    });
    expect(expectedFiles([sum({ model: "score", category: "audio" })], sizes)).toMatchObject({
      files: 3,
      unknown: ["score"],
    });
    expect(expectedFiles([sum({ model: "film", category: "video", due: 0 })], sizes)).toEqual({
      files: 0,
      bytes: 0,
      unknown: [],
    });
  });

  const told = (bytes: number, roomBytes: number | null, change = {}) =>
    diskWarning({ files: 3, bytes, unknown: [], ...change }, roomBytes).map(({ message }) => message);

  test("are a warning where there is no room for them", () => {
    expect(told(5_000, 5_000)).toEqual([]);
    expect(told(5_000, null)).toEqual([]);
    expect(told(5_000, 0, { files: 0 })).toEqual([]);
    expect(told(5_001, 5_000)).toEqual([
      "The files need about 5 kB and 5 kB is free on the output disk: free up space or choose another folder with --out.",
    ]);
    expect(told(5_001, 5_000, { unknown: ["film"] })[0]).toMatch(/^The files need more than 5 kB and/);
    expect(told(0, 1)).toEqual([]);
    expect(told(0, 0)).toEqual([
      "The output disk is full (67.1 MB free, and 67.1 MB stay reserved for the run's own records). Nothing is submitted until there is space: free up space or choose another folder with --out.",
    ]);
  });
});

test("a run that is short of credits is told to be bound by them", () => {
  expect(needs([sum()], {}, { isShortOfCredits: true }).forecast.binds).toBe("credits");
  expect(needs([sum({ credits: noCredits })], {}, { chainMs: 900_000 }).forecast.ms).toBe(900_000);
});
