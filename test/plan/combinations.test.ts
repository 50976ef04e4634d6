import { expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import { openManifest } from "../../src/manifest/read.js";
import { allRows } from "../../src/plan/plan.js";
import { fileWith } from "../manifest/folder.js";
import { plan } from "./account.js";

async function planned(job: object, change = {}) {
  return plan(await openManifest(await fileWith("job.json", JSON.stringify(job))), change);
}

test("one wrong value of a matrix leaves out its combinations alone", async () => {
  const { items, problems } = await planned({
    rows: [{ id: "a", model: "paint", prompt: "x" }],
    matrix: { "params.aspect_ratio": ["1:1", "16:10", "16:9"] },
  });
  expect(items.map(({ rowId }) => rowId)).toEqual(["a-1x1", "a-16x9"]);
  expect(problems).toMatchObject([
    { place: { row: 1, combination: "aspect_ratio=16:10", column: "params.aspect_ratio" }, got: "16:10" },
  ]);
  expect(problems[0]?.place).toHaveProperty("line");
});

test("a template that is wrong, or a value that the matrix gives too, leaves out its row in every combination, and a value that is wrong its combinations alone", async () => {
  const row = { id: "a", model: "paint", prompt: "x" };
  for (const wrong of [
    { prompt: "{{ nothing }}" },
    { output: "{{ nothing }}" },
    { params: { aspect_ratio: "1:1" } },
  ]) {
    const everywhere = await planned({
      rows: [{ ...row, ...wrong }],
      matrix: { "params.aspect_ratio": ["1:1", "16:9"] },
    });
    expect(everywhere.items).toEqual([]);
    expect(everywhere.problems).toHaveLength(1);
    expect(everywhere.problems[0]?.place).not.toHaveProperty("combination");
  }
  const { items, problems } = await planned({ rows: [row], matrix: { priority: ["1", "high"] } });
  expect(items).toHaveLength(1);
  expect(problems).toMatchObject([{ place: { row: 1, combination: "priority=high" }, got: "high" }]);
});

test("names carry the combination: with an id, without one, and with an output", async () => {
  const { items } = await planned({
    rows: [{ id: "a", prompt: "x" }, { prompt: "y" }, { prompt: "z", output: "cups/z.png" }],
    defaults: { model: "paint" },
    matrix: { "params.aspect_ratio": ["1:1", "16:9"] },
  });
  expect(items.map(({ name }) => name)).toEqual([
    "a-1x1",
    "a-16x9",
    `${items[2]?.rowId}-1x1`,
    `${items[3]?.rowId}-16x9`,
    "cups/z-1x1",
    "cups/z-16x9",
  ]);
});

test("an output template that gives several combinations the same name is a problem, before anything is paid", async () => {
  const { problems } = await planned({
    rows: [{ id: "a", model: "paint", prompt: "x", output: "{{ id }}" }],
    matrix: { "params.aspect_ratio": ["1:1", "16:9"] },
  });
  expect(problems).toMatchObject([{ place: { row: 1, column: "output" }, got: "a" }]);
});

test("combinations that ask for the very same thing are a warning with its price", async () => {
  const { warnings, notes } = await planned({
    rows: [{ model: "paint", prompt: "x" }],
    matrix: { lang: ["en", "de", "fr"] },
  });
  expect(warnings).toMatchObject([{ kind: "identical_rows", rows: [1], copies: 2 }]);
  expect(warnings[0]?.message).toContain("3 combinations of row 1 are identical");
  expect(notes[0]).toContain("nothing uses lang");
});

test("the step of an item is a column: it can be selected, and comes back in the export", async () => {
  const steps = ["still", "close-up"].map((name) => ({ name, prompt: `{{ product }}, ${name}` }));
  const job = { defaults: { model: "paint" }, rows: [{ product: "cup" }], matrix: { lang: ["en"] }, steps };
  const closeUps = { ...allRows, filters: [{ key: "step", pattern: "close-*" }] };
  const { items, sheet } = await planned(job, { selection: closeUps });
  expect(items.map(({ cells }) => cells)).toEqual([
    [
      ["product", "cup"],
      ["lang", "en"],
      ["step", "close-up"],
    ],
  ]);
  expect(sheet.columns).toEqual(["product", "lang", "step"]);
});

test("a sheet's own column `step` stays as it is", async () => {
  const steps = ["still", "close-up"].map((name) => ({ name, prompt: `{{ step }}, ${name}` }));
  const { items, sheet } = await planned({ defaults: { model: "paint" }, rows: [{ step: "3" }], steps });
  expect(items.map(({ prompt, cells }) => [prompt, cells])).toEqual([
    ["3, still", [["step", "3"]]],
    ["3, close-up", [["step", "3"]]],
  ]);
  expect(sheet.columns).toEqual(["step"]);
});

test("rows that are identical in each step are one warning, with the price of all steps", async () => {
  const steps = ["still", "close-up"].map((name) => ({ name, prompt: `{{ product }}, ${name}` }));
  const { warnings } = await planned({
    defaults: { model: "paint" },
    rows: [{ product: "cup" }, { product: "cup" }, { product: "bowl" }],
    matrix: { lang: ["en"] },
    steps,
  });
  expect(warnings).toMatchObject([{ kind: "identical_rows", rows: [1, 2], copies: 2, credits: credits(8) }]);
  expect(warnings[0]?.message).toMatch(/^rows 1, 2 are identical; each is made and paid for/);
});

test("several groups of identical combinations of a row are counted in one warning", async () => {
  const steps = ["still", "close-up"].map((name) => ({ name, prompt: `{{ product }}, ${name}` }));
  const job = {
    defaults: { model: "paint" },
    rows: [{ product: "cup" }],
    matrix: { lang: ["en", "de"] },
    steps,
  };
  const { warnings } = await planned(job);
  expect(warnings).toMatchObject([{ kind: "identical_rows", rows: [1], copies: 2, credits: credits(8) }]);
  expect(warnings[0]?.message).toContain("2 groups of 2 combinations of row 1 are identical");
});

test("an item is the same one whether its row, a matrix or a template asks for it", async () => {
  const rows = [{ id: "q", model: "paint", prompt: "a red cup", params: { aspect_ratio: "1:1" } }];
  const plain = await planned({ rows });
  const made = await planned({
    prompt: "a {{ colour }} cup",
    defaults: { model: "paint" },
    matrix: { colour: ["red"], params: { aspect_ratio: ["1:1"] } },
  });
  expect(made.items.map(({ key }) => key)).toEqual(plain.items.map(({ key }) => key));
  expect(made.items[0]?.cells).toEqual([
    ["colour", "red"],
    ["params.aspect_ratio", "1:1"],
  ]);
});

test("an id template that gives several combinations one id is a problem that says so", async () => {
  const { problems } = await planned({
    rows: [{ id: "cup {{ index }}", model: "paint", prompt: "x" }],
    matrix: { "params.aspect_ratio": ["1:1", "16:9"] },
  });
  expect(problems).toMatchObject([
    {
      place: { row: 1, column: "id" },
      message: "several items of row 1 have the same id",
      expected: "an id template or values of the matrix that differ for each item",
      got: "cup 1",
    },
  ]);
});
