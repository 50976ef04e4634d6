import { join } from "node:path";
import { expect, test } from "vitest";
import type { Model } from "../../src/api/records.js";
import type { PlannedItem } from "../../src/core/ports/draft.js";
import { openManifest } from "../../src/manifest/read.js";
import { catalogue } from "../../src/sandbox/catalogue/catalogue.js";
import { readManifest } from "../manifest/read.js";
import { me, plan } from "./account.js";

const jobs = join(import.meta.dirname, "../../jobs");
const models: Model[] = catalogue.map((model) => ({
  model_key: model.key,
  model_name: model.name,
  category: model.category,
  credits_cost: model.credits,
  input_type: model.inputType,
  parameters: model.parameters.map((parameter) => ({ ...parameter })),
}));

async function planned(name: string, balance = 500, repair = false) {
  const manifest = await openManifest(join(jobs, name), { repair });
  const account = me(balance, { plan: "Pro" });
  return plan(manifest, { models, me: account, origin: "http://s", repair });
}

test("the demo is right for the sandbox's models, and stays within one minute's quota and 500 credits", async () => {
  const made = await planned("demo.csv");
  expect(made.problems).toEqual([]);
  expect([made.blockers, made.warnings, made.notes]).toEqual([[], [], []]);
  expect(made.items.length).toBeGreaterThanOrEqual(24);
  expect(made.fit.items).toBe(made.items.length);
  expect(made.requests.atLeast).toBeLessThanOrEqual(54);
});

test("the demo's JSON twin asks for the very same things: after the one, the other pays nothing", async () => {
  const [csv, json] = [await planned("demo.csv"), await planned("demo.json")];
  expect(json.problems).toEqual([]);
  expect(json.job).toBe(csv.job);
  const told = ({ key, rowId, name }: PlannedItem) => ({ key, rowId, name });
  expect(json.items.map(told)).toEqual(csv.items.map(told));
});

test("the nightly example is right for the sandbox's models, and has all three media", async () => {
  const made = await planned("nightly.example.json");
  expect([made.problems, made.blockers, made.warnings]).toEqual([[], [], []]);
  expect(new Set(made.items.map(({ category }) => category))).toEqual(new Set(["image", "audio", "video"]));
});

test("the demo shows what spreadsheets hold: accents, quotes, and a line break inside a cell", async () => {
  const { rows } = await readManifest(join(jobs, "demo.csv"));
  const prompts = rows.map((row) => row.prompt ?? "").join("");
  expect(prompts).toMatch(/é/);
  expect(prompts).toMatch(/"/);
  expect(prompts).toMatch(/\n/);
});

test("the product shots are every product in every format and language, and the first preview is five of them", async () => {
  const { items, problems, warnings } = await planned("product-shots.yaml");
  expect([problems, warnings]).toEqual([[], []]);
  expect(items.map(({ rowId }) => rowId).slice(0, 5)).toEqual([
    "moon-jar-en-square",
    "moon-jar-en-story",
    "moon-jar-de-square",
    "moon-jar-de-story",
    "tea-bowl-en-square",
  ]);
  expect(items).toHaveLength(12);
  expect(new Set(items.map(({ name }) => name)).size).toBe(12);
});

test("the voice-overs are a picture and three voices of each product, from one sheet and one prompt file", async () => {
  const { items, problems, warnings, notes } = await planned("voice-overs.yaml");
  expect([problems, warnings, notes]).toEqual([[], [], []]);
  expect(items.slice(0, 4).map(({ category, prompt }) => [category, prompt?.split(". ").at(-1)])).toEqual([
    ["image", "Moon jar on a window sill in the first light"],
    ["audio", "From 120 euros."],
    ["audio", "Ab 120 Euro."],
    ["audio", "Desde 120 euros."],
  ]);
});

test("the sheet as a spreadsheet saves it is read, and runs once its times are repaired", async () => {
  const broken = await planned("spreadsheet.csv");
  expect(broken.problems.map(({ got, repair }) => [got, repair])).toEqual([
    ["04:03", "4:3"],
    ["16:09", "16:9"],
    ["Paper", "paper"],
  ]);
  const { problems, items, notes } = await planned("spreadsheet.csv", 500, true);
  expect([problems, items.length]).toEqual([[], 3]);
  expect(notes.join("\n")).toContain("Windows-1252");
  expect(items[0]?.prompt).toContain("„Forêt“");
});
