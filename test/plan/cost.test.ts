import { describe, expect, test } from "vitest";
import type { Me, Model } from "../../src/api/records.js";
import { priceGroup } from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import { coverageText, noCaps, PlanPrices, tightest } from "../../src/plan/cost.js";
import { models as allModels, contentOf, kept, me, planOf } from "./account.js";

const edit = (id: string) => `${id},edit,x,https://example.com/${id}.png\n`;
const sheet = `id,model,prompt,image_url\n${edit("a")}b,paint,y,\n${edit("c")}d,paint,z,\n`;

const total = (most: number, spent = 0) => ({ total: { most: credits(most), spent: credits(spent) } });

const price = (each: number) => ({ price: credits(each), base: credits(each), charged: null });

test("a plan says what it needs, what is left, and what each model costs (P7)", async () => {
  const { money, models, fit } = await planOf(sheet, { me: me(100.5) });
  expect(money).toEqual({
    needed: credits(21),
    within: credits(21),
    inDoubt: 0,
    balance: credits(100.5),
    after: credits(79.5),
    maxCredits: null,
    spent: 0,
  });
  expect(models).toEqual([
    { model: "edit", category: "image", items: 2, due: 2, ...price(6.5), credits: credits(13) },
    { model: "paint", category: "image", items: 2, due: 2, ...price(4), credits: credits(8) },
  ]);
  expect(fit).toEqual({ items: 4, credits: credits(21), rowNumber: 5, rowId: "d" });
});

test("prices are added exactly, not as floating numbers", async () => {
  const tenth = { model_key: "m", model_name: "m", category: "image", credits_cost: 0.1, input_type: "text" };
  const rows = Array.from({ length: 30 }, (_, n) => `m,${n}`).join("\n");
  const { money, blockers } = await planOf(`model,prompt\n${rows}\n`, { models: [tenth], me: me(3) });
  expect(money.needed).toBe(credits(3));
  expect(blockers).toEqual([]);
});

describe("a balance that is too small", () => {
  test("blocks, and says how many items and which row it reaches", async () => {
    const { blockers, items, fit } = await planOf(sheet, { me: me(15) });
    expect(fit).toEqual({ items: 2, credits: credits(10.5), rowNumber: 3, rowId: "b" });
    expect(blockers).toEqual([
      {
        kind: "insufficient_credits",
        message: "The run needs 21 credits and the balance is 15: it covers 2 items, through row 3 (b).",
        needed: credits(21),
        balance: credits(15),
        coverage: fit,
      },
    ]);
    // d would be cheap enough for what is left, but c comes before it.
    expect(items.filter(({ fits }) => fits).map(({ rowId }) => rowId)).toEqual(["a", "b"]);
  });

  test("because a budget of the key ends first, says when it is renewed", async () => {
    const budget = { left: 15, of: 40, per: "day", renews_at: "2026-11-29T00:00:00.000Z" };
    const { blockers } = await planOf(sheet, { me: { ...me(15), service: { budget } } });
    expect(blockers[0]?.message).toBe(
      "The run needs 21 credits, and this key has 15 of 40 credits left today, renewed at 00:00 UTC: it covers 2 items, through row 3 (b).",
    );
  });

  test("that costs nothing says so", async () => {
    const { blockers } = await planOf(sheet, { me: me(1) });
    expect(blockers).toMatchObject([{ message: expect.stringContaining("does not cover the first item") }]);
  });

  test("reaches by priority", async () => {
    const { fit, items } = await planOf("id,model,prompt,priority\na,paint,x,\nb,paint,y,1\n", { me: me(4) });
    expect(fit).toMatchObject({ items: 1, rowId: "b" });
    expect(items.map(({ fits }) => fits)).toEqual([false, true]);
  });

  test("stops nothing when nothing is to be paid", async () => {
    const before = await planOf(sheet);
    const existing = before.items.map((item) => ({ ...item, state: "archived" as const }));
    expect((await planOf(sheet, { me: me(-1), existing })).blockers).toEqual([]);
  });

  test("stops nothing when the cap ends the run before", async () => {
    const { blockers, warnings } = await planOf(sheet, { me: me(12), caps: total(11) });
    expect(blockers).toEqual([]);
    expect(warnings).toMatchObject([{ kind: "over_cap", coverage: { items: 2 } }]);
  });
});

describe("a balance", () => {
  const told = (balance: unknown) => ({ ...me(), credits: { balance, used_this_key: 0 } });

  test.each([null, undefined, "twelve", Number.NaN, -1e300])(
    "that is %j is not told: the service judges, and nothing is kept of it",
    async (balance) => {
      const { money, blockers, warnings, fit } = await planOf(sheet, { me: told(balance) });
      expect([money.balance, money.after, fit.items, blockers]).toEqual([null, null, 4, []]);
      expect(warnings.map(({ kind }) => kind)).toEqual(["unreported_balance"]);
      const kept = await planOf(sheet, { me: told(balance), caps: { keep: credits(1) } });
      expect(kept.fit.items).toBe(0);
    },
  );

  test.each([9_000_000_001, 1e300])("of %d is enough", async (balance) => {
    const { blockers, warnings, fit } = await planOf(sheet, {
      me: told(balance),
      caps: { keep: credits(1_000_000) },
    });
    expect([fit.items, blockers, warnings]).toEqual([4, [], []]);
  });
});

test("a cap counts what is spent already, over a resume", async () => {
  expect((await planOf(sheet, { caps: total(21) })).warnings).toEqual([]);
  const { warnings, fit, money } = await planOf(sheet, { caps: total(21, 10) });
  expect(warnings).toMatchObject([{ kind: "over_cap", needed: credits(21), room: credits(11), undone: 2 }]);
  expect(fit).toMatchObject({ items: 2, credits: credits(10.5) });
  expect(money).toMatchObject({ within: credits(10.5), after: credits(989.5) });
});

describe("a plan says what a cap will leave undone", () => {
  const daily = (most: number, spent: number) => ({
    daily: { most: credits(most), spent: credits(spent) },
  });

  test.each([
    [total(11), "--max-credits leaves 11: it covers 2 items, through row 3 (b); 2 items will not be made"],
    [daily(50, 33), "--max-credits-per-day leaves 17 today: it covers 3 items, through row 4 (c); 1 item"],
    [{ keep: credits(994) }, "--keep-credits leaves 6: it does not cover the first item; 4 items will"],
    [{ ...total(20), ...daily(9, 2) }, "--max-credits-per-day leaves 7 today: it covers 1 item,"],
  ])("%#", async (caps, words) => {
    const { blockers, warnings } = await planOf(sheet, { caps });
    expect(blockers).toEqual([]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.message).toContain(`The run needs 21 credits and ${words}`);
  });

  test("of one model, and the others are made", async () => {
    const models = new Map([["edit", { most: credits(9), spent: credits(1) }]]);
    const { warnings, fit, money, requests, files } = await planOf(sheet, { caps: { models } });
    expect(warnings.map(({ message }) => message)).toEqual([
      "edit needs 13 credits and --max-credits-per-model leaves 8: 1 of its 2 items will not be made.",
    ]);
    expect(fit).toMatchObject({ items: 3, rowId: "d" });
    expect(money.within).toBe(credits(14.5));
    expect([requests.atLeast, files.files]).toEqual([6, 3]);
  });
});

describe("the subscription", () => {
  const findings = async (subscription: Parameters<typeof me>[1]) => {
    const { blockers, warnings } = await planOf(sheet, { me: me(100, subscription) });
    return { blockers: blockers.map(({ kind }) => kind), warnings: warnings.map(({ kind }) => kind) };
  };

  test.each<[string, Parameters<typeof me>[1], string[], string[]]>([
    ["active", {}, [], []],
    ["null", null, ["no_subscription"], []],
    ["past due", { status: "past_due" }, ["past_due"], []],
    ["canceled", { status: "canceled" }, [], ["canceled"]],
    ["of a status that nobody knows", { status: "trialing" }, [], ["unknown_subscription"]],
  ])("that is %s", async (_name, subscription, blockers, warnings) => {
    expect(await findings(subscription)).toEqual({ blockers, warnings });
  });

  test("that is canceled can be used until its end, which is named", async () => {
    const { warnings } = await planOf(sheet, { me: me(100, { status: "canceled" }) });
    expect(warnings).toMatchObject([
      { until: "2026-12-01T00:00:00Z", message: expect.stringContaining("2026-12-01") },
    ]);
  });
});

describe("requests", () => {
  test("are two for each item to submit, and one for each task at the service", async () => {
    const before = await planOf(sheet);
    const states = ["processing", "archived"] as const;
    const existing = before.items.slice(0, 2).map((item, n) => ({ ...item, state: states[n] ?? "archived" }));
    const { requests } = await planOf(sheet, { existing });
    expect(requests).toMatchObject({ atLeast: 5, plan: "Starter", perMinute: 30, perDay: 1_000 });
  });

  test("take a time that is a guess for models that nothing was made with, unless requests are what binds", async () => {
    const pace = (group: string) => ({
      mean: Math.log(9_000),
      spread: 0.3,
      finished: group.includes("paint") ? 3 : 0,
    });
    const guessed = async (change: Parameters<typeof planOf>[1], text = sheet) =>
      (await planOf(text, change)).requests.forecast.guessed;
    expect(await guessed({})).toEqual({ models: ["edit", "paint"], areAll: true, sandbox: false });
    // Published local files are no sign of the sandbox.
    const localInputs = contentOf({});
    expect(await guessed({ localInputs })).toMatchObject({ sandbox: false });
    expect(await guessed({ localInputs, sandbox: true })).toMatchObject({ sandbox: true });
    expect(await guessed({ pace })).toEqual({ models: ["edit"], areAll: false, sandbox: false });
    expect(await guessed({ pace: (group) => ({ ...pace(group), finished: 1 }) })).toBeUndefined();
    const many = Array.from({ length: 100 }, (_, n) => `paint,${n}`).join("\n");
    expect(await guessed({}, `model,prompt\n${many}\n`)).toBeUndefined();
  });

  test("that are more than a day allows are a warning", async () => {
    const rows = Array.from({ length: 501 }, (_, n) => `paint,${n}`).join("\n");
    const warnings = async (subscription: Partial<NonNullable<Me["subscription"]>>) =>
      (await planOf(`model,prompt\n${rows}\n`, { me: me(9_999, subscription) })).warnings;
    expect(await warnings({})).toMatchObject([{ kind: "day_limit", atLeast: 1_002, perDay: 1_000 }]);
    expect(await warnings({ plan: "Enterprise" })).toEqual([]);
  });
});

test("a plan is plain data: JSON gives it back whole", async () => {
  const plan = await planOf(sheet, { me: me(12), caps: total(20) });
  expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
});

test("what was really charged before stands beside the base price, from the least params to the most", async () => {
  const dear = priceGroup({ model: "paint", params: { mood: "dark" } });
  const charges = new Map([
    [priceGroup({ model: "paint", params: {} }), credits(3.5)],
    [dear, credits(6)],
  ]);
  const text = "id,model,prompt,params.mood\na,paint,x,\nb,paint,y,dark\nc,paint,z,light\n";
  const { models, money } = await planOf(text, { charges });
  expect(models).toMatchObject([
    { base: credits(4), charged: { least: credits(3.5), most: credits(6) }, credits: credits(13.5) },
  ]);
  expect(money.needed).toBe(credits(13.5));
});

test("the list price beside a charge is that of the chosen options", async () => {
  const options = [
    { value: "low", label: "Low" },
    { value: "high", label: "High", credits_cost: 12 },
  ];
  const clip = {
    model_key: "clip",
    model_name: "Clip",
    category: "video",
    credits_cost: 3,
    input_type: "text",
    parameters: [{ key: "quality", label: "Quality", type: "select", default: "low", options }],
  };
  const charges = new Map([[priceGroup({ model: "clip", params: { quality: "high" } }), credits(11)]]);
  const text = "id,model,prompt,params.quality\na,clip,x,high\n";
  const { models } = await planOf(text, { models: [clip], charges });
  expect(models).toMatchObject([{ base: credits(12), price: credits(11) }]);
});

describe("the subscription's period", () => {
  const film = (rows: number) =>
    `model,prompt,image_url\n${Array.from({ length: rows }, (_, n) => `animate,${n},https://example.com/${n}.png`).join("\n")}`;
  const until = "2026-11-20T12:00:00Z";
  const warnings = async (rows: number, subscription: Partial<NonNullable<Me["subscription"]>>) => {
    const plan = await planOf(film(rows), { me: me(99_999, { current_period_end: until, ...subscription }) });
    return plan.warnings.filter(({ kind }) => kind === "ends" || kind === "period_ends");
  };

  test("that ends for good is reported, and one that ends before the run does", async () => {
    expect(await warnings(3, {})).toEqual([]);
    expect(await warnings(3, { cancel_at_period_end: true })).toMatchObject([{ kind: "ends", until }]);
    // Six hundred submits and looks do not go into a day of Starter.
    expect(await warnings(600, {})).toMatchObject([
      {
        kind: "period_ends",
        until,
        message: expect.stringContaining("continues if the next period is paid"),
      },
    ]);
    expect(await warnings(600, { cancel_at_period_end: true })).toMatchObject([
      { kind: "ends" },
      { kind: "period_ends", message: expect.stringContaining("items left by then will be refused") },
    ]);
  });
});

describe("files and disk space", () => {
  const sizes = [
    { model: "edit", category: "image", items: 10, files: 20, bytes: 40_000_000 },
    { model: "other", category: "image", items: 1, files: 1, bytes: 1_000_000 },
    { model: "score", category: "audio", items: 1, files: 1, bytes: 9_000_000 },
  ];

  test("are expected by what the model made before, else by its category", async () => {
    const clip = "e,animate,,https://example.com/e.png\n";
    const { files } = await planOf(sheet + clip, { sizes });
    // Two of edit leave two files of 2 MB each; two of paint as other pictures: 41 MB and 21 files of 11 items.
    expect(files).toEqual({ files: 9, bytes: 8_000_000 + 7_454_545, unknown: ["animate"] });
    expect((await planOf(sheet)).files).toEqual({ files: 4, bytes: 0, unknown: ["edit", "paint"] });
  });

  test("that do not fit where they go are a warning", async () => {
    expect((await planOf(sheet, { sizes, roomBytes: 20_000_000 })).warnings).toEqual([]);
    expect((await planOf(sheet, { sizes, roomBytes: 15_000_000 })).warnings).toMatchObject([
      {
        kind: "disk_space",
        message: expect.stringContaining("need about 15.5 MB and 15 MB is free on the output disk"),
      },
    ]);
  });

  const full = 20_000_000 - 64 * 2 ** 20;
  const why =
    "(20 MB free, and 67.1 MB stay reserved for the run's own records). Nothing is submitted until there is space: free up space";
  test.each([
    ["is not known", [], `The output disk is full ${why}`],
    ["is known", sizes, `The files need about 15.5 MB and nothing is free on the output disk ${why}`],
  ])("P17: no room at all is a warning where their size %s", async (_, sizes, message) => {
    expect((await planOf(sheet, { sizes, roomBytes: full })).warnings).toMatchObject([
      { kind: "disk_space", message: expect.stringContaining(message) },
    ]);
  });

  test("that will not be made need no room", async () => {
    const existing = kept(await planOf(sheet), "archived", "archived", "archived", "archived");
    expect((await planOf(sheet, { existing, roomBytes: full })).warnings).toEqual([]);
  });

  test("of which only some have a known size need more than that", async () => {
    const clip = "e,animate,,https://example.com/e.png\n";
    expect((await planOf(sheet + clip, { sizes, roomBytes: 15_000_000 })).warnings).toMatchObject([
      { message: expect.stringContaining("need more than 15.5 MB and 15 MB is free") },
    ]);
  });
});

describe("price groups", () => {
  const [paint, edit] = allModels as [Model, Model];
  const prices = () => new PlanPrices(new Map());

  test("are one for each model and params, whatever objects say them", () => {
    const of = prices();
    const shared = { mood: "warm" };
    const kinds = [
      of.of(paint, shared),
      of.of(edit, shared),
      of.of(paint, { mood: "warm" }),
      of.of(paint, { mood: "cold" }),
      of.of(paint, { mood: " warm " }),
      of.of(paint, shared),
    ];
    expect(kinds.map(({ group }) => group)).toEqual([0, 1, 0, 2, 0, 0]);
    expect(kinds[0]).toMatchObject({ model: "paint", category: "image", price: credits(4), params: shared });
    expect(of.groupOf(1)).toMatchObject({ model: "edit", category: "image" });
    expect(() => of.groupOf(3)).toThrow("no price group 3 in this plan");
  });

  test("are a thousand at most; more of a model are counted with its first one", () => {
    const of = prices();
    const numbers = Array.from({ length: 1_002 }, (_, mood) => of.of(paint, { mood: `${mood}` }).group);
    expect(numbers.slice(998)).toEqual([998, 999, 0, 0]);
    expect(of.of(edit, {}).group).toBe(1_000);
    expect(of.of(edit, { mood: "x" }).group).toBe(1_000);
    expect(of.of(paint, { mood: "1001" })).toMatchObject({ group: 0, price: credits(4) });
  });
});

test("the cap with the least left is the one that counts, and none leaves less than nothing", () => {
  const all = {
    ...noCaps,
    total: { most: credits(20), spent: credits(5) },
    daily: { most: credits(30), spent: credits(10) },
    keep: credits(90),
  };
  expect(tightest({ caps: all, balance: credits(102) })).toEqual({ cap: "keep-credits", room: credits(12) });
  expect(tightest({ caps: all, balance: credits(109) })).toEqual({ cap: "max-credits", room: credits(15) });
  const daily = { ...all, daily: { most: credits(30), spent: credits(31) } };
  expect(tightest({ caps: daily, balance: credits(500) })).toEqual({ cap: "max-credits-per-day", room: 0 });
  expect(tightest({ caps: { ...noCaps, keep: credits(90) }, balance: credits(80) })?.room).toBe(0);
  expect(tightest({ caps: { ...noCaps, keep: credits(90) }, balance: null })?.room).toBe(0);
  expect(tightest({ caps: noCaps, balance: credits(5) })).toBeNull();
});

test("a cap that leaves out one item says so", async () => {
  const { warnings } = await planOf(sheet, { caps: total(17) });
  expect(warnings[0]?.message).toBe(
    "The run needs 21 credits and --max-credits leaves 17: it covers 3 items, through row 4 (c); 1 item will not be made.",
  );
});

test("what credits cover is told for one item and for several", () => {
  const fit = { credits: credits(4), rowNumber: 2, rowId: "a" };
  expect(coverageText({ ...fit, items: 1 })).toBe("it covers 1 item, through row 2 (a)");
  expect(coverageText({ ...fit, items: 2 })).toBe("it covers 2 items, through row 2 (a)");
});

describe("caps of models", () => {
  const models = (most: number, spent = 0) => ({
    models: new Map([["edit", { most: credits(most), spent: credits(spent) }]]),
  });

  test("that suffice are no warning, and one that leaves nothing leaves out all of the model", async () => {
    expect(await planOf(sheet, { caps: models(13) })).toMatchObject({ warnings: [], fit: { items: 4 } });
    const { warnings, fit } = await planOf(sheet, { caps: models(3, 5) });
    expect(warnings).toMatchObject([
      { kind: "over_model_cap", model: "edit", needed: credits(13), room: 0, undone: 2 },
    ]);
    expect(fit).toMatchObject({ items: 2, rowId: "d" });
    const one = await planOf(`id,model,prompt,image_url\n${edit("a")}`, { caps: models(3) });
    expect(one.warnings[0]?.message).toContain("1 of its 1 item will not be made");
  });

  test("leave items that cost nothing to be made", async () => {
    const free = priceGroup({ model: "edit", params: { size: "1k" } });
    const text = `id,model,prompt,image_url,params.size\n${edit("a").trim()},\n${edit("b").trim()},1k\n`;
    const bare = allModels.map(({ parameters: _, ...model }) => model);
    const charges = new Map([[free, credits(0)]]);
    const { fit } = await planOf(text, { caps: models(1), models: bare, charges });
    expect(fit).toMatchObject({ items: 1, rowId: "b" });
  });

  test("count beside a cap of the run, which leaves out what comes after", async () => {
    const caps = { ...models(7), ...total(10) };
    const { warnings, fit, money } = await planOf(sheet, { caps });
    expect(fit).toMatchObject({ items: 1, rowId: "a", credits: credits(6.5) });
    expect(money.within).toBe(credits(6.5));
    expect(warnings).toMatchObject([
      { kind: "over_cap", cap: "max-credits", room: credits(10), undone: 2 },
      { kind: "over_model_cap", undone: 1 },
    ]);
  });

  test("do not let a cheaper item of the model jump the queue", async () => {
    const dear = priceGroup({ model: "edit", params: { size: "4k" } });
    const text = `id,model,prompt,image_url,params.size\n${edit("a").trim()},4k\n${edit("b").trim()},\n`;
    const bare = allModels.map(({ parameters: _, ...model }) => model);
    const { fit } = await planOf(text, {
      caps: models(7),
      models: bare,
      charges: new Map([[dear, credits(9)]]),
    });
    expect(fit.items).toBe(0);
  });
});
