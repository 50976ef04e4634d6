import { describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import type { PlannedItem } from "../../src/core/ports/draft.js";
import type { Plan } from "../../src/plan/plan.js";
import { driftOf, readSavedPlan, savePlan } from "../../src/plan/saved-plan.js";
import { jsonPieces } from "../../src/text/json-stream.js";

const item = (id: string, change: Partial<PlannedItem> = {}): PlannedItem => ({
  key: `k1:${id}`,
  edition: "",
  occurrence: 1,
  variant: 1,
  position: 1,
  priority: 0,
  rowNumber: 2,
  rowId: id,
  name: id,
  model: "plain-image",
  category: "image",
  prompt: `a ${id}`,
  params: {},
  inputs: {},
  cells: [],
  price: credits(4),
  standing: "new",
  due: true,
  order: 0,
  fits: true,
  ...change,
});

const four = [item("cup"), item("jug"), item("pot"), item("bowl")];

function plan(change: Partial<Plan> & { balance?: number } = {}): Plan {
  const { balance = 100, ...rest } = change;
  return {
    job: "set",
    file: "set.csv",
    origin: "https://a.example",
    user: "ada",
    edition: "",
    items: four,
    unselected: [],
    money: { balance: credits(balance) } as Plan["money"],
    requests: { atLeast: 8, plan: "Pro", perMinute: 60, perDay: 10_000 },
    ...rest,
  } as Plan;
}

const place = { savedAt: "2026-11-21T02:00:00.000Z", manifest: "/m/set.csv", workspace: "/m" };
const finishAt = null;
const forecast = { requests: 9, ms: 1_000, binds: "minute", larger: null } as const;

const saved = readSavedPlan(
  JSON.parse(
    [...jsonPieces(savePlan(plan(), { ...place, sandbox: false, flags: [["--model", "x"]] }))].join(""),
  ),
);
const refused = (now: Plan, tolerance = 0) =>
  driftOf(saved, now, tolerance).flatMap((drift) => (drift.refused ? [drift.message] : []));

describe("a saved plan", () => {
  test("that is as it was has no drift; nor has one that became better", () => {
    expect(driftOf(saved, plan(), 0)).toEqual([]);
    const cheaper = four.map((each) => ({ ...each, price: credits(3) }));
    const requests = {
      atLeast: 8,
      plan: "Enterprise",
      perMinute: null,
      perDay: null,
      lanes: 1,
      forecast,
      finishAt,
    };
    expect(driftOf(saved, plan({ balance: 200, items: cheaper, requests }), 0)).toEqual([]);
  });

  test.each<[string, Partial<Plan> & { balance?: number }, string[]]>([
    [
      "a changed, a new and a missing row",
      { items: [item("cup", { key: "k1:other", prompt: "a mug" }), item("jug"), item("pot"), item("urn")] },
      [
        "manifest: row 2 (cup): prompt changed",
        "manifest: row 2 (urn) is new",
        "manifest: row 2 (bowl) is gone",
      ],
    ],
    [
      "a higher price",
      { items: four.map((each) => ({ ...each, price: credits(5) })) },
      ["price: plain-image was 4 credits, now 5"],
    ],
    [
      "smaller limits",
      {
        requests: {
          atLeast: 8,
          plan: "Starter",
          perMinute: 30,
          perDay: 1_000,
          lanes: 1,
          forecast,
          finishAt,
        },
      },
      [
        "limit: 60 requests a minute when planned, now 30",
        "limit: 10000 requests a day when planned, now 1000",
      ],
    ],
    ["a smaller balance", { balance: 90 }, ["balance: 100 credits expected, now 90"]],
    ["another account", { user: "bob" }, ["account: planned for ada, now bob"]],
    ["another service", { origin: "https://b" }, ["service: planned for https://a.example, now https://b"]],
    ["another edition", { edition: "#2" }, ["edition: planned for the first, now #2"]],
  ])("tells %s", (_, change, messages) => {
    expect(refused(plan(change))).toEqual(messages);
  });

  test("accepts as much drift as the tolerance allows, and reports it", () => {
    expect(refused(plan({ balance: 90 }), 9.9)).toHaveLength(1);
    expect(refused(plan({ balance: 90 }), 10)).toEqual([]);
    expect(driftOf(saved, plan({ balance: 90 }), 10)).toHaveLength(1);
    expect(refused(plan({ user: "bob" }), 100)).toHaveLength(1);
    expect(refused(plan({ items: four.slice(1) }), 25)).toEqual([]);
    expect(refused(plan({ items: four.slice(1) }), 24)).toHaveLength(1);
  });

  test("continues after a crash: what its own items cost is no drift", () => {
    const items = four.map((each, index) => ({ ...each, due: index > 1 }));
    expect(refused(plan({ items, balance: 92 }))).toEqual([]);
    expect(refused(plan({ items, balance: 91 }))).toHaveLength(1);
  });

  test("expects back what failed items of its own would have cost", () => {
    const items = four.map(({ rowId }) =>
      item(rowId, { due: false, standing: rowId === "bowl" ? "failed" : "archived" }),
    );
    expect(refused(plan({ items, balance: 88 }))).toEqual([]);
    expect(refused(plan({ items, balance: 84 }))).toEqual(["balance: 88 credits expected, now 84"]);
  });

  test("tells which items are due again, and takes them as its credits allow", () => {
    const failed = { standing: "failed", due: false } as const;
    const before = [item("cup", failed), item("jug", failed), item("pot"), item("bowl")];
    const pieces = jsonPieces(savePlan(plan({ items: before }), { ...place, sandbox: false, flags: [] }));
    const document = readSavedPlan(JSON.parse([...pieces].join("")));
    const again = before.map((each) => (each.rowId === "cup" ? item("cup", { standing: "planned" }) : each));
    const drift = (tolerance: number) => driftOf(document, plan({ items: again }), tolerance);
    const message = "items: row 2 (cup) is due again, for 4 credits";
    expect(drift(49)).toEqual([{ message, refused: true }]);
    expect(drift(50)).toEqual([{ message, refused: false }]);
    expect(driftOf(document, plan({ items: before }), 0)).toEqual([]);
  });

  test("of failed rows does not miss those that are made by now", () => {
    expect(refused(plan({ items: four.slice(1), unselected: ["k1:cup"], balance: 96 }))).toEqual([]);
  });

  test.each([
    [{ bulkgen: "plan", version: 2 }, "expected a saved plan of version 1, got version 2"],
    [{ bulkgen: "plan", version: 1 }, "expected a saved plan; its savedAt is missing or damaged"],
  ])("refuses %j", (document, message) => {
    expect(() => readSavedPlan(document)).toThrow(message);
  });
});
