import { join } from "node:path";
import { expect, test } from "vitest";
import type { Model } from "../../src/api/records.js";
import { readManifest } from "../../src/manifest/read.js";
import { makePlan } from "../../src/plan/make-plan.js";
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

test("the demo is right for the sandbox's models, and stays within one minute's quota and 500 credits", async () => {
  const manifest = await readManifest(join(jobs, "demo.csv"));
  const plan = makePlan({
    manifest,
    models,
    me: me(500, { plan: "Pro" }),
    origin: "http://s",
    edition: "",
    existing: [],
  });
  expect(plan.problems).toEqual([]);
  expect([plan.blockers, plan.warnings, plan.notes]).toEqual([[], [], []]);
  expect(plan.items.length).toBeGreaterThanOrEqual(24);
  expect(plan.fit.items).toBe(plan.items.length);
  expect(plan.requests.atLeast).toBeLessThanOrEqual(54);
});

test("the demo shows what spreadsheets hold: accents, quotes, and a line break inside a cell", async () => {
  const { rows } = await readManifest(join(jobs, "demo.csv"));
  const prompts = rows.map((row) => row.prompt ?? "").join("");
  expect(prompts).toMatch(/é/);
  expect(prompts).toMatch(/"/);
  expect(prompts).toMatch(/\n/);
});
