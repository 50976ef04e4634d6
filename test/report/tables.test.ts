import { describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import { digestOf } from "../../src/core/problem.js";
import { accountText, modelsTable } from "../../src/report/account.js";
import { type Fleet, fleetText } from "../../src/report/fleet.js";
import { planText, rowsTable } from "../../src/report/plan-table.js";
import { problemLine, problemsText, shownPath } from "../../src/report/problem-text.js";
import { me, models, plan, quota } from "./facts.js";

const here = "/studio/autumn";

const narrow = { width: 60, colour: false };
const wide = { width: 100, colour: false };

describe("models", () => {
  test("in 60 columns", () =>
    expect(modelsTable(models, narrow)).toMatchInlineSnapshot(`
    "model            name               category  input  credits
    canvas-standard  Canvas Standard,   image     text         4
                     for posters and
                     covers
    voice            Voice              audio     text       0.5

    model            parameter            values (* default)
    canvas-standard  params.aspect_ratio  1:1*, 16:9, 9:16, 4:3,
                                          3:4
    canvas-standard  params.seed          any"
  `));
  test("in 100 columns", () =>
    expect(modelsTable(models, wide)).toMatchInlineSnapshot(`
    "model            name                                     category  input  credits
    canvas-standard  Canvas Standard, for posters and covers  image     text         4
    voice            Voice                                    audio     text       0.5

    model            parameter            values (* default)
    canvas-standard  params.aspect_ratio  1:1*, 16:9, 9:16, 4:3, 3:4
    canvas-standard  params.seed          any"
  `));
  test("without parameters are one table", () => {
    expect(modelsTable(models.slice(1))).toBe(
      "model  name   category  input  credits\nvoice  Voice  audio     text       0.5",
    );
  });
  test("that are none are said to be none", () =>
    expect(modelsTable([])).toBe("The service offers no models."));
});

describe("the account", () => {
  test("in 60 columns", () =>
    expect(accountText({ me, quota }, narrow)).toMatchInlineSnapshot(`
    "user         Ada <ada@example.com>
    user id      user_1
    credits      388.5 left, 112 used by this key
    plan         Pro, active, 500 credits a month, billed by the
                 month, renews 2026-12-01
    this minute  31 of 60 requests, from this machine
    24 hours     340 of 10000 requests, from this machine
    key          nightly (key_1), 1234 requests in all"
  `));
  test("in 100 columns", () =>
    expect(accountText({ me, quota }, wide)).toMatchInlineSnapshot(`
    "user         Ada <ada@example.com>
    user id      user_1
    credits      388.5 left, 112 used by this key
    plan         Pro, active, 500 credits a month, billed by the month, renews 2026-12-01
    this minute  31 of 60 requests, from this machine
    24 hours     340 of 10000 requests, from this machine
    key          nightly (key_1), 1234 requests in all"
  `));
  test("without subscription, limits or name", () => {
    const unlimited = { ...quota.minute, limit: null };
    const nameless = { ...me, subscription: null, user: { ...me.user, name: null } };
    const text = accountText({
      me: nameless,
      quota: { ...quota, minute: unlimited, day: { ...unlimited, used: 1 } },
    });
    expect(text).toContain("user         <ada@example.com>\n");
    expect(text).toContain("plan         no active subscription: generation needs one\n");
    expect(text).toContain("this minute  no limit\n24 hours     no limit\n");
  });
  test("that does not report its numbers", () => {
    const odd = {
      ...me,
      credits: { balance: null, used_this_key: "seven" },
      api_key: { id: "k", name: "n" },
    };
    const text = accountText({ me: odd, quota });
    expect(text).toMatch(/credits +unknown left, unknown used by this key/);
    expect(text).toMatch(/n \(k\), requests unknown/);
  });
  test("of a key with a budget says what is left of it and until when", () => {
    const told = (budget: unknown, more: object = {}) =>
      accountText({ me: { ...me, service: { budget }, ...more }, quota });
    const day = { left: 2, of: 12, per: "day", renews_at: "2026-11-29T00:00:00.000Z" };
    expect(told(day)).toMatch(
      /credits +2 of 12 credits left today, renewed at 00:00 UTC; 112 used by this key\n/,
    );
    expect(told({ ...day, left: 0.5, per: "month", renews_at: "2026-12-01T00:00:00.000Z" })).toMatch(
      /credits +0.5 of 12 credits left this month, renewed on 2026-12-01 UTC; 112 used/,
    );
    for (const odd of [null, { ...day, per: "year" }, { ...day, left: "2" }, { ...day, renews_at: "soon" }])
      expect(told(odd)).toMatch(/credits +388.5 left, 112 used by this key/);
  });
  test("without credits a month does not speak of them", () => {
    const subscription = { ...me.subscription!, credits_per_month: 0 };
    expect(accountText({ me: { ...me, subscription }, quota })).toMatch(
      /plan +Pro, active, billed by the month, renews 2026-12-01\n/,
    );
  });
  test("whose subscription ends", () => {
    const subscription = { ...me.subscription!, status: "canceled", cancel_at_period_end: true };
    expect(accountText({ me: { ...me, subscription }, quota })).toContain(
      "Pro, canceled, 500 credits a month, billed by the month, ends 2026-12-01",
    );
  });
});

describe("a plan", () => {
  test("in 60 columns", () =>
    expect(planText(plan, here, narrow)).toMatchInlineSnapshot(`
      "demo (jobs/demo.csv)

      model       category  items  to make  each  charged  credits
      canvas-     image        20       18     4      4–6       72
      standard
      voice       audio         6        6   0.5                 3
      total                    26       24                      75

      items     24 new, 2 archived
      credits   75 needed, 60 on the account, 15 short, cap 100, 8
                of it spent
      time      about 30s, limited by generation time
      requests  about 49; plan Pro: 60 requests a minute, 10000 a
                day
      files     24 files, about 2.71 MB, not counting voice (no
                history yet)

      Problems:
      jobs/demo.csv, row 12, id cover-12, column model: unknown model "canvas-standart"; expected one of canvas-standard, voice, got "canvas-standart"; did you mean "canvas-standard"?
      a.json:3:7: no rows; expected a row, got none

      Blocked by:
      - The run needs 75 credits and the balance is 60.

      Warnings:
      - Rows 4 and 5 are identical.

      Notes:
      - column colour is not used"
    `));
  test("that is not refused for its blockers has them among its warnings", () => {
    const [message, ...warnings] = [plan.blockers[0]!.message, ...plan.warnings];
    const short = { ...plan, warnings } as typeof plan;
    const lists = (text: string) => text.match(/^(?:Blocked by|Warnings):\n(?:- .*\n)+/gm);
    expect(lists(planText(short, here, wide))?.[0]).toBe(`Blocked by:\n- ${message}\n`);
    expect(lists(planText(short, here, wide, []))).toEqual([
      `Warnings:\n- ${message}\n- ${warnings[0]!.message}\n`,
    ]);
  });
  test("in 100 columns", () =>
    expect(planText(plan, here, wide)).toMatchInlineSnapshot(`
      "demo (jobs/demo.csv)

      model            category  items  to make  each  charged  credits
      canvas-standard  image        20       18     4      4–6       72
      voice            audio         6        6   0.5                 3
      total                         26       24                      75

      items     24 new, 2 archived
      credits   75 needed, 60 on the account, 15 short, cap 100, 8 of it spent
      time      about 30s, limited by generation time
      requests  about 49; plan Pro: 60 requests a minute, 10000 a day
      files     24 files, about 2.71 MB, not counting voice (no history yet)

      Problems:
      jobs/demo.csv, row 12, id cover-12, column model: unknown model "canvas-standart"; expected one of canvas-standard, voice, got "canvas-standart"; did you mean "canvas-standard"?
      a.json:3:7: no rows; expected a row, got none

      Blocked by:
      - The run needs 75 credits and the balance is 60.

      Warnings:
      - Rows 4 and 5 are identical.

      Notes:
      - column colour is not used"
    `));
  test("with nothing wrong is three blocks", () => {
    const clean = {
      ...plan,
      edition: "spring",
      models: plan.models.slice(1),
      problems: [],
      blockers: [],
      warnings: [],
      notes: [],
      money: {
        needed: credits(3),
        within: credits(3),
        inDoubt: noCredits,
        balance: credits(60),
        after: credits(57),
        maxCredits: null,
        spent: noCredits,
      },
      requests: {
        atLeast: 12,
        plan: null,
        perMinute: null,
        perDay: null,
        lanes: 1,
        forecast: {
          requests: 12,
          ms: 9_000,
          binds: "generation" as const,
          larger: null,
          guessed: { models: ["voice"], areAll: true, sandbox: false },
        },
        finishAt: null,
      },
    };
    expect(planText(clean, here)).toMatchInlineSnapshot(`
      "demo (jobs/demo.csv, edition spring)

      model  category  items  to make  each  credits
      voice  audio         6        6   0.5        3

      items     24 new, 2 archived
      credits   3 needed, 60 on the account, 57 after
      time      about 10s, limited by generation time; rough estimate (no history for these models yet)
      requests  about 12; without a plan: no limit; up to 1 submit at once (--lanes)
      files     24 files, about 2.71 MB, not counting voice (no history yet)"
    `);
  });
  test("says what requests in doubt may add", () => {
    const money = { ...plan.money, inDoubt: credits(1.5) };
    const shown = (states: typeof plan.states) =>
      planText({ ...plan, money, states }, here).replace(/\s+/g, " ");
    expect(shown({ archived: 2, unknown: 1 })).toContain(
      "75 needed, up to 1.5 more if 1 request in doubt was not charged, ",
    );
    expect(shown({ submitting: 2, unknown: 1 })).toContain(
      "75 needed, up to 1.5 more if 3 requests in doubt were not charged, ",
    );
  });
  test("names the models whose time is a guess", () => {
    const forecast = {
      ...plan.requests.forecast,
      guessed: { models: ["voice"], areAll: false, sandbox: false },
    };
    expect(planText({ ...plan, requests: { ...plan.requests, forecast } }, here, wide)).toContain(
      "limited by generation time; rough estimate for voice",
    );
  });
  test("shows its rows on one line each", () => {
    const row = {
      rowNumber: 2,
      rowId: "cover-1",
      model: "voice",
      prompt: "a\nb",
      price: credits(0.5),
      state: "new" as const,
    };
    expect(rowsTable([row, { ...row, rowNumber: 12, prompt: null }])).toBe(
      "row  id       model  prompt  credits  state\n  2  cover-1  voice  a b         0.5  new\n 12  cover-1  voice              0.5  new",
    );
  });
});

test("a problem names its place in a file of any kind", () => {
  const problem = { message: "no rows", expected: "a row", got: "none" };
  expect(problemLine({ ...problem, place: { file: "a.csv", row: null } })).toBe(
    "a.csv: no rows; expected a row, got none",
  );
  expect(
    problemLine({ ...problem, place: { file: "a.json", row: 2, line: 3, lineColumn: 7, column: "rows" } }),
  ).toBe("a.json:3:7, row 2, column rows: no rows; expected a row, got none");
});

test("one mistake in a column is one problem that names its rows; the same in every combination, how often", () => {
  const wrong = { message: "no option", expected: "16:9", got: "16:10" };
  const inMatrix = [2, 3, 4].map((row) => ({
    ...wrong,
    place: {
      file: "job.yaml",
      row,
      line: 7,
      lineColumn: 5,
      column: "params.ratio",
      combination: "ratio=16:10",
    },
  }));
  const inCell = [1, 2].map((n) => ({
    ...wrong,
    place: { file: "a.csv", row: 2, combination: `lang=${n}` },
  }));
  expect(problemsText(digestOf([...inMatrix, ...inCell]), here).split("\n")).toEqual([
    "job.yaml:7:5, rows 2, 3 and 4, column params.ratio: no option; expected 16:9, got 16:10",
    "a.csv, row 2, (lang=1): no option; expected 16:9, got 16:10 (and 1 more time)",
  ]);
  const inColumn = Array.from({ length: 60 }, (_, index) => ({
    message: `model paint has no parameter "Ratio"`,
    expected: "one of: ratio",
    got: "Ratio",
    place: { file: "a.csv", row: index + 2, id: `r${index}`, column: "params.Ratio" },
  }));
  const differing = [7, 9].map((row) => ({
    message: "not a usable web address",
    expected: "https://…",
    got: `ftp://${row}`,
    place: { file: "a.csv", row, column: "image_url" },
  }));
  expect(problemsText(digestOf([...inColumn, ...differing]), here).split("\n")).toEqual([
    'a.csv, rows 2, 3, 4 and 57 more, column params.Ratio: model paint has no parameter "Ratio"; expected one of: ratio',
    "a.csv, rows 7 and 9, column image_url: not a usable web address; expected https://…, got ftp://7 in row 7",
  ]);
});

test("values that a spreadsheet changed come with the flag that repairs them", () => {
  const place = { file: "a.csv", row: 2 };
  const wrong = { place, message: "no option", expected: "16:9", got: "16:09", repair: "16:9" };
  expect(problemsText(digestOf([wrong]), here)).toContain(
    "a spreadsheet seems to have changed 1 of these values",
  );
});

test("many problems are cut short and counted", () => {
  const problems = Array.from({ length: 103 }, (_, index) => ({
    message: `unknown model "m${index}"`,
    expected: "a model",
    got: `m${index}`,
    place: { file: "a.csv", row: index + 2 },
  }));
  const lines = problemsText(digestOf(problems), here).split("\n");
  expect(lines[0]).toBe('a.csv, row 2: unknown model "m0"; expected a model');
  expect(lines).toHaveLength(101);
  expect(lines[100]).toBe(
    "and 3 more: `bulkgen plan a.csv --json` has every one; `bulkgen run --skip-invalid` leaves out invalid rows and writes problems.csv",
  );
  const blank = problems.map(({ place, ...rest }) => ({
    ...rest,
    place: { ...place, file: `${here}/my set.csv` },
  }));
  expect(problemsText(digestOf(blank), here)).toContain('and 3 more: `bulkgen plan "my set.csv" --json`');
});

test("a plan names what changed and what no row asks for any more", () => {
  const changed = [
    {
      rowNumber: 4,
      rowId: "cover-3",
      key: "k1:a",
      oldKey: "k1:b",
      fields: ["prompt", "params.size"].map((field) => ({ field, from: "old", to: "new" })),
    },
  ];
  const vanished = [
    { key: "k1:c", rowId: "old", state: "planned" as const, replacedBy: null, hasRow: false },
    { key: "k1:b", rowId: "cover-3", state: "archived" as const, replacedBy: "k1:a", hasRow: true },
    { key: "k1:d", rowId: "cover-4", state: "archived" as const, replacedBy: null, hasRow: true },
    { key: "k1:e", rowId: "cover-5", state: "failed" as const, replacedBy: null, hasRow: true },
  ];
  expect(planText({ ...plan, changed, vanished }, here)).toContain(
    "\n\nChanged:\n- row 4 (cover-3): prompt, params.size; the old file will move to _superseded/\n- cover-4: the row no longer asks for its archived version\n- old is no longer in the manifest\n\n",
  );
});

test("a file is named as seen from the current folder, where that is shorter", () => {
  expect(shownPath("/studio/autumn/jobs/set.csv", here)).toBe("jobs/set.csv");
  expect(shownPath("/studio/set.csv", here)).toBe("../set.csv");
  expect(shownPath("/a/set.csv", here)).toBe("/a/set.csv");
  expect(shownPath("jobs/set.csv", here)).toBe("jobs/set.csv");
});

test("P24: the list of workers has no sequence of another machine's name", () => {
  const host = "studio\u001b]0;owned\u0007\u202e";
  const worker = { host, pid: 7, version: "1.0.0", downloads: 4, busy: 1, does: "archive", startedAt: 0 };
  const fleet = {
    workers: [worker],
    waiting: 0,
    longestWaitMs: null,
    active: 1,
    lock: { host, pid: 8, run: 3, since: 0 },
  };
  const lines = fleetText(fleet as unknown as Fleet).split("\n");
  expect(lines).toEqual([
    expect.stringMatching(/^run 3 is in progress on studio \(process 8\)/),
    expect.stringMatching(/^studio \(process 7, bulkgen 1\.0\.0\): downloads;/),
  ]);
});

describe("bulkgen models", () => {
  test("of a hundred thousand models prints the beginning, and says how to get all", () => {
    const models = Array.from({ length: 100_000 }, (_, at) => ({
      model_key: `model-${at + 1}`,
      model_name: `Model ${at + 1}`,
      category: "image",
      credits_cost: 1,
      input_type: "text",
      parameters: [{ key: "size", label: "Size", type: "select", options: [], default: "s" }],
    }));
    const text = modelsTable(models, { width: 100, colour: false });
    expect(text).toContain("model-200 ");
    expect(text).not.toContain("model-201 ");
    expect(text).toContain("99800 more models. --json prints all, and --save FILE writes them to a file.");
  });
});
