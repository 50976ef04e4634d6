import { join } from "node:path";
import { expect, test } from "vitest";
import type { Model } from "../../src/api/records.js";
import { readManifest } from "../../src/manifest/read.js";
import { makePlan } from "../../src/plan/make-plan.js";
import type { PlannedItem } from "../../src/plan/plan.js";
import { catalogue } from "../../src/sandbox/catalogue.js";
import { me } from "./account.js";

const jobs = join(import.meta.dirname, "../../jobs");
const models: Model[] = catalogue.map((model) => ({
  model_key: model.key,
  model_name: model.name,
  category: model.category,
  credits_cost: model.credits,
  input_type: model.inputType,
  parameters: model.parameters.map((parameter) => ({ ...parameter })),
}));

async function planned(name: string, balance = 500) {
  const manifest = await readManifest(join(jobs, name));
  const account = me(balance, { plan: "Pro" });
  return makePlan({ manifest, models, me: account, origin: "http://s", edition: "", existing: [] });
}

test("the demo is right for the sandbox's models, and stays within one minute's quota and 500 credits", async () => {
  const plan = await planned("demo.csv");
  expect(plan.problems).toEqual([]);
  expect([plan.blockers, plan.warnings, plan.notes]).toEqual([[], [], []]);
  expect(plan.items.length).toBeGreaterThanOrEqual(24);
  expect(plan.fit.items).toBe(plan.items.length);
  expect(plan.requests.atLeast).toBeLessThanOrEqual(54);
});

test("the demo's JSON twin asks for the very same things: after the one, the other pays nothing", async () => {
  const [csv, json] = [await planned("demo.csv"), await planned("demo.json")];
  expect(json.problems).toEqual([]);
  expect(json.job).toBe(csv.job);
  const told = ({ key, rowId, name }: PlannedItem) => ({ key, rowId, name });
  expect(json.items.map(told)).toEqual(csv.items.map(told));
});

test("the nightly example is right for the sandbox's models, and has all three media", async () => {
  const plan = await planned("nightly.example.json");
  expect([plan.problems, plan.blockers, plan.warnings]).toEqual([[], [], []]);
  expect(new Set(plan.items.map(({ category }) => category))).toEqual(new Set(["image", "audio", "video"]));
});

test("the demo shows what spreadsheets hold: accents, quotes, and a line break inside a cell", async () => {
  const { rows } = await readManifest(join(jobs, "demo.csv"));
  const prompts = rows.map((row) => row.prompt ?? "").join("");
  expect(prompts).toMatch(/é/);
  expect(prompts).toMatch(/"/);
  expect(prompts).toMatch(/\n/);
});
