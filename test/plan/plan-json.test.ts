import { expect, test } from "vitest";
import { priceGroup } from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import { allRows } from "../../src/plan/plan.js";
import { planJson } from "../../src/plan/plan-json.js";
import { me, planOf } from "./account.js";

const sheet = "id,model,prompt,image_url\na,edit,x,https://example.com/a.png\nb,paint,y,\n";

test("a plan for programs has its credits as numbers and its times as text", async () => {
  const charges = new Map([[priceGroup({ model: "edit", params: {} }), credits(7.5)]]);
  const caps = { total: { most: credits(10), spent: credits(1.5) } };
  const plan = await planOf(sheet, { me: me(5), charges, caps });
  const json = planJson(plan);
  expect([...json.items].map(({ rowId, price }) => [rowId, price])).toEqual([
    ["a", 7.5],
    ["b", 4],
  ]);
  expect(json.items.length).toBe(2);
  expect(json.models).toMatchObject([
    { model: "edit", price: 7.5, credits: 7.5, base: 6.5, charged: { least: 7.5, most: 7.5 } },
    { model: "paint", price: 4, credits: 4, base: 4, charged: null },
  ]);
  expect(json.money).toEqual({
    needed: 11.5,
    within: 7.5,
    inDoubt: 0,
    balance: 5,
    after: -2.5,
    maxCredits: 10,
    spent: 1.5,
  });
  expect(json.fit).toEqual({ items: 0, credits: 0, rowNumber: null, rowId: null });
  expect(json.requests.finishAt).toBe(new Date(plan.requests.finishAt ?? 0).toISOString());
  expect(json.blockers).toEqual([{ kind: "insufficient_credits", message: plan.blockers[0]?.message }]);
  expect(json.warnings).toEqual([{ kind: "over_cap", message: plan.warnings[0]?.message }]);
  expect(json.unselected).toBe(0);
  for (const hidden of ["sheet", "due", "workflow", "graph"]) expect(json).not.toHaveProperty(hidden);
});

test("what is not known is null: a balance that is not told, no cap, and no time of a run without work", async () => {
  const untold = { ...me(), credits: { balance: null, used_this_key: 0 } };
  const plan = await planOf(sheet, { me: untold, selection: { ...allRows, first: 1 } });
  expect(planJson(plan)).toMatchObject({
    money: { balance: null, after: null, maxCredits: null },
    unselected: 1,
  });
  const existing = plan.items.map((item) => ({ ...item, state: "archived" as const }));
  const done = await planOf(sheet, { existing, selection: { ...allRows, first: 1 } });
  expect(planJson(done).requests.finishAt).toBeNull();
});

test("the steps are part of it if they are asked for", async () => {
  const { graph } = planJson(await planOf(sheet), true);
  expect(graph?.steps).toMatchObject([
    { name: "edit", items: 1, due: 1, credits: 6.5, next: [] },
    { name: "paint", credits: 4 },
  ]);
});
