import { describe, expect, test } from "vitest";
import type { Me } from "../../src/api/records.js";
import { credits } from "../../src/core/money.js";
import { me, planOf } from "./account.js";

const edit = (id: string) => `${id},edit,x,https://example.com/${id}.png\n`;
const sheet = `id,model,prompt,image_url\n${edit("a")}b,paint,y,\n${edit("c")}d,paint,z,\n`;

test("a plan says what it needs, what is left, and what each model costs (P7)", async () => {
  const { money, models, fit } = await planOf(sheet, { me: me(100.5) });
  expect(money).toEqual({
    needed: credits(21),
    balance: credits(100.5),
    after: credits(79.5),
    maxCredits: null,
    spent: 0,
  });
  expect(models).toEqual([
    { model: "edit", category: "image", items: 2, due: 2, price: credits(6.5), credits: credits(13) },
    { model: "paint", category: "image", items: 2, due: 2, price: credits(4), credits: credits(8) },
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
        message: "The run needs 21 credits and the balance is 15: it reaches for 2 items, up to row 3 (b).",
        needed: credits(21),
        balance: credits(15),
        reaches: fit,
      },
    ]);
    // d would be cheap enough for what is left, but c comes before it.
    expect(items.filter(({ fits }) => fits).map(({ rowId }) => rowId)).toEqual(["a", "b"]);
  });

  test("that pays for nothing says so", async () => {
    const { blockers } = await planOf(sheet, { me: me(1) });
    expect(blockers).toMatchObject([{ message: expect.stringContaining("does not pay for the first item") }]);
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
    const { blockers, warnings } = await planOf(sheet, { me: me(12), maxCredits: credits(11) });
    expect(blockers).toEqual([]);
    expect(warnings).toMatchObject([{ kind: "over_cap", reaches: { items: 2 } }]);
  });
});

test("a cap counts what is spent already, over a resume", async () => {
  const cap = { maxCredits: credits(21) };
  expect((await planOf(sheet, cap)).warnings).toEqual([]);
  const { warnings, fit } = await planOf(sheet, { ...cap, spent: credits(10) });
  expect(warnings).toMatchObject([{ kind: "over_cap", needed: credits(21), maxCredits: credits(21) }]);
  expect(fit).toMatchObject({ items: 2, credits: credits(10.5) });
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

  test("that are more than a day allows are a warning", async () => {
    const rows = Array.from({ length: 501 }, (_, n) => `paint,${n}`).join("\n");
    const warnings = async (subscription: Partial<NonNullable<Me["subscription"]>>) =>
      (await planOf(`model,prompt\n${rows}\n`, { me: me(9_999, subscription) })).warnings;
    expect(await warnings({})).toMatchObject([{ kind: "day_limit", atLeast: 1_002, perDay: 1_000 }]);
    expect(await warnings({ plan: "Enterprise" })).toEqual([]);
  });
});

test("a plan is plain data: JSON gives it back whole", async () => {
  const plan = await planOf(sheet, { me: me(12), maxCredits: credits(20) });
  expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
});
