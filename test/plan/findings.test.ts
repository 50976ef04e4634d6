import { describe, expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { credits, noCredits } from "../../src/core/money.js";
import { lateMsMax } from "../../src/core/quota/quota.js";
import {
  blockersOf,
  deadlineWarning,
  Gathered,
  missingWarning,
  settlingWarning,
  unusedParamColumns,
  warningsOf,
} from "../../src/plan/findings.js";
import type { Fit, Money, Requests } from "../../src/plan/plan.js";
import { me, models, planOf } from "./account.js";

test("prompts in quotes that are not those of CSV are noted, because they are sent with them", async () => {
  const sheet = `id,model,prompt\na,${models[0]?.model_key},'a cup'\nb,${models[0]?.model_key},“a jar”\nc,${models[0]?.model_key},"say ""open"" twice"\nd,${models[0]?.model_key},it's 5' tall\n`;
  const { notes } = await planOf(sheet);
  expect(notes).toContain("the prompt is in quotes, which are sent with it (rows 2, 3)");
});

test("P5: settling before the last moment at which a lost request may arrive is warned of", () => {
  expect(settlingWarning([1_000, 2_000])).toEqual([
    {
      kind: "early_settling",
      message: expect.stringMatching(
        /--settle-seconds .* 2 s .* 400 s .*Expected at least 400 as the last value, got 2\./,
      ),
      seconds: 2,
      atLeast: 400,
    },
  ]);
  expect(settlingWarning([1_000, lateMsMax - 1_000])).toHaveLength(1);
  expect(settlingWarning([1_000, lateMsMax])).toEqual([]);
  expect(settlingWarning(defaultReconcile.settleMs)).toEqual([]);
});

test("a run that takes longer than --until or --max-duration lets it is warned of", () => {
  const requests = { finishAt: Date.UTC(2026, 10, 22, 7) } as Parameters<typeof deadlineWarning>[0];
  expect(deadlineWarning(requests, Date.UTC(2026, 10, 22, 6))).toEqual([
    {
      kind: "deadline",
      message: expect.stringMatching(
        /^Submitting ends at 2026-11-22 .*, and the run takes until about 2026-11-22 /,
      ),
      until: "2026-11-22T06:00:00.000Z",
      finishAt: requests.finishAt,
    },
  ]);
  expect(deadlineWarning(requests, requests.finishAt)).toEqual([]);
  expect(deadlineWarning(requests, null)).toEqual([]);
  expect(deadlineWarning({ ...requests, finishAt: null }, 0)).toEqual([]);
});

const money = (needed: number, balance: number | null, within = needed): Money => ({
  needed: credits(needed),
  within: credits(within),
  inDoubt: noCredits,
  balance: balance === null ? null : credits(balance),
  after: null,
  maxCredits: null,
  spent: noCredits,
});
const reaching = (items: number): Fit => ({
  items,
  credits: credits(4),
  rowNumber: items === 0 ? null : 2,
  rowId: "a",
});
const requests = (change: Partial<Requests> = {}) =>
  ({ atLeast: 10, perDay: 1_000, finishAt: null, ...change }) as Requests;

describe("what blocks a run", () => {
  const messages = (
    account: ReturnType<typeof me>,
    needed: number,
    balance: number | null,
    within = needed,
  ) => blockersOf(account, money(needed, balance, within), reaching(1)).map(({ message }) => message);

  test("is told with what to do", () => {
    expect(messages(me(9, null), 0, 9)).toEqual([
      "The account has no active subscription: choose a plan in your dashboard first.",
    ]);
    expect(messages(me(9, { status: "past_due" }), 0, 9)).toEqual([
      "The subscription payment is past due: pay it in your dashboard first.",
    ]);
    expect(messages(me(9), 10, 9)).toEqual([
      "The run needs 10 credits and the balance is 9: it covers 1 item, through row 2 (a).",
    ]);
  });

  test("is a balance that does not reach as far as the caps do, and none that just suffices or is not told", () => {
    expect(messages(me(9), 10, 10)).toEqual([]);
    expect(messages(me(9), 10, 9, 9)).toEqual([]);
    expect(messages(me(9), 0, -1, 0)).toEqual([]);
    expect(messages(me(9), 10, null)).toEqual([]);
  });
});

describe("what the user should know", () => {
  const warned = (
    subscription: Parameters<typeof me>[1],
    change: Partial<Requests> = {},
    balance: number | null = 9,
  ) => warningsOf(me(9, subscription), money(1, balance), requests(change)).map(({ message }) => message);
  const end = Date.UTC(2026, 11, 1);

  test("of the account is told in a sentence", () => {
    expect(warned({})).toEqual([]);
    expect(warned({}, {}, null)).toEqual([
      "The service does not report the balance, so the run may stop with too few credits.",
    ]);
    expect(warned({ status: "canceled" })).toEqual([
      "The subscription is canceled and ends on 2026-12-01T00:00:00Z.",
    ]);
    expect(warned({ status: "trialing" })).toEqual([
      'The subscription\'s status "trialing" is unknown to this version of bulkgen; the run continues and the service decides.',
    ]);
    expect(warned({ status: "past_due" })).toEqual([]);
    expect(warned(null)).toEqual([]);
  });

  test("of the day's requests is that they do not suffice, where they do not", () => {
    expect(warned({}, { atLeast: 1_000 })).toEqual([]);
    expect(warned({}, { atLeast: 1_001 })).toEqual([
      "The run needs at least 1001 requests and the plan allows 1000 in 24 hours, so it will take several days.",
    ]);
    expect(warned({}, { atLeast: 1_001, perDay: null })).toEqual([]);
  });

  test("of the period is that it ends, for good or before the run does", () => {
    const ends = "The subscription ends with its period, on 2026-12-01T00:00:00Z, and is not renewed.";
    const endsBefore = (then: string) =>
      `The subscription's period ends on 2026-12-01T00:00:00Z, and the run takes until about 2026-12-01 00:01 UTC: ${then}.`;
    const late = { finishAt: end + 60_000 };
    expect(warned({ cancel_at_period_end: true })).toEqual([ends]);
    expect(warned({}, { finishAt: end })).toEqual([]);
    expect(warned({}, late)).toEqual([endsBefore("the run continues if the next period is paid")]);
    expect(warned({ cancel_at_period_end: true }, late)).toEqual([
      ends,
      endsBefore("items left by then will be refused"),
    ]);
    expect(warned({ cancel_at_period_end: true, status: "canceled" }, late)).toEqual([
      "The subscription is canceled and ends on 2026-12-01T00:00:00Z.",
      endsBefore("items left by then will be refused"),
    ]);
    expect(warned({ current_period_end: "soon" }, late)).toEqual([]);
  });
});

describe("archived items whose files are gone are told", () => {
  const told = (count: number, way: Parameters<typeof missingWarning>[1] = "report") =>
    missingWarning(
      Array.from({ length: count }, (_, index) => ({ rowId: `r${index}`, price: credits(4) })),
      way,
    );

  test("with the ways to have them again", () => {
    expect(told(0)).toEqual([]);
    expect(told(1)).toEqual([
      {
        kind: "missing_files",
        message:
          "1 archived item has lost files (r0): --missing fetch downloads them again at no cost while the service has them, --missing pay makes them again for 4 credits.",
        items: ["r0"],
        credits: credits(4),
      },
    ]);
  });

  test("with what will be done, and the first five of them", () => {
    expect(told(5, "fetch")[0]?.message).toBe(
      "5 archived items have lost files (r0, r1, r2, r3, r4): they are downloaded again at no cost.",
    );
    expect(told(7, "pay")[0]?.message).toBe(
      "7 archived items have lost files (r0, r1, r2, r3, r4 and 2 more): they are made and paid for again: 28 credits.",
    );
  });
});

describe("a note about several rows", () => {
  const lines = (notes: readonly [string, number][]) => {
    const gathered = new Gathered();
    for (const [about, row] of notes) gathered.add(about, row);
    return gathered.lines();
  };

  test("names the first five of them, each once, and counts the others", () => {
    expect(lines([["odd", 2]])).toEqual(["odd (row 2)"]);
    expect(lines([2, 2, 3, 4, 5, 6].map((row) => ["odd", row]))).toEqual(["odd (rows 2, 3, 4, 5, 6)"]);
    expect(lines([2, 3, 4, 5, 6, 7, 8].map((row) => ["odd", row]))).toEqual([
      "odd (rows 2, 3, 4, 5, 6 and 2 more)",
    ]);
  });

  test("is one of a hundred; of more kinds only their number is told", () => {
    const kinds = (count: number) =>
      Array.from({ length: count }, (_, n): [string, number] => [`odd ${n}`, 2]);
    expect(lines(kinds(100))).toHaveLength(100);
    expect(lines(kinds(102)).slice(99)).toEqual(["odd 99 (row 2)", "and 2 more like these"]);
    expect(lines([...kinds(101), ["odd 0", 3]])[0]).toBe("odd 0 (rows 2, 3)");
  });
});

test("inputs that a model does not ask for are noted by model and field, and of unknown input types nothing is", async () => {
  const [paint] = models;
  const odd = { ...paint, model_key: "odd", input_type: "smell" } as (typeof models)[number];
  const url = "https://example.com/a.png";
  const { notes } = await planOf(
    `model,prompt,image_url,video_url\npaint,x,${url},\npaint,y,,${url}\nedit,z,${url},\nodd,x,${url},${url}\n`,
    { models: [...models, odd] },
  );
  expect(notes).toEqual([
    "model paint does not list image_url as an input; it is sent anyway (row 2)",
    "model paint does not list video_url as an input; it is sent anyway (row 3)",
  ]);
});

test("a column without its prefix is told for the models that have such a parameter, and no other column is", () => {
  expect(unusedParamColumns(["Mood", "season"], models)).toEqual([
    {
      kind: "unused_param_column",
      message: 'column "Mood" does nothing; did you mean "params.mood"?',
      column: "Mood",
      models: ["paint"],
    },
  ]);
});
