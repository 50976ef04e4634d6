import { describe, expect, test } from "vitest";
import type { Model, ModelParameter } from "../../src/api/records.js";
import { priceGroup } from "../../src/core/identity.js";
import { openManifest } from "../../src/manifest/read.js";
import type { Existing, PlanInput } from "../../src/plan/plan.js";
import { fileWith } from "../manifest/folder.js";
import { kept, plan } from "./account.js";

const select = (key: string, ...values: string[]): ModelParameter => ({
  key,
  label: key,
  type: "select",
  options: values.map((value) => ({ value, label: value })),
  default: values[0] ?? "",
});
const text = (key: string): ModelParameter => ({ key, label: key, type: "text", options: [], default: "" });

const model = (model_key: string, change: Partial<Model>): Model => ({
  model_key,
  model_name: model_key,
  category: "image",
  credits_cost: 4,
  input_type: "text",
  parameters: [],
  ...change,
});
/** `paint` as the catalogue describes it, beside a model that takes every default. */
const catalogue = (paint: Partial<Model>) => [
  model("paint", paint),
  model("all", { parameters: ["style", "size", "mood", "tone", "light"].map(text) }),
  model("clip", { category: "video", input_type: "image", parameters: paint.parameters ?? [] }),
];
const sheet = "id,model,prompt\na,paint,x\nb,paint,y\nc,all,z\n";

type Change = Partial<Omit<PlanInput, "draft" | "manifest" | "existing">> & {
  existing?: readonly Existing[];
  params?: Record<string, string>;
  file?: string;
};

async function planned(rows: string, { params = {}, file = "sheet.csv", ...change }: Change) {
  const manifest = await openManifest(await fileWith(file, rows), { defaults: { params } });
  return plan(manifest, change);
}

/** The plan under the second catalogue of what was made under the first one. */
async function afterwards(
  rows: string,
  [before, after]: readonly [Partial<Model>, Partial<Model>],
  { state = "archived", repair, ...change }: Change & { state?: Existing["state"] } = {},
) {
  const given = { ...change, ...(repair === undefined ? {} : { repair }) };
  const first = await planned(rows, { ...given, models: catalogue(before) });
  expect(first.problems).toEqual([]);
  const leftOut = new Map(Object.entries(first.leftOut).map(([name, keys]) => [name, new Set(keys)]));
  const existing = kept(first, state);
  const second = await planned(rows, { ...given, models: catalogue(after), existing, leftOut });
  return { first, second, keys: [first, second].map(({ items }) => items.map(({ key }) => key)) };
}

const oil = { style: "oil" };
const ratio = select("aspect_ratio", "16:9", "1:1");

describe("P2: an item that is paid for stays as it is when the catalogue", () => {
  test.each<[string, string, readonly [Partial<Model>, Partial<Model>], Change]>([
    ["adds a param that a default names", sheet, [{}, { parameters: [text("style")] }], { params: oil }],
    [
      "adds several params that defaults name",
      sheet,
      [{}, { parameters: ["style", "size", "mood", "tone", "light"].map(text) }],
      { params: { ...oil, size: "1", mood: "2", tone: "3", light: "4" } },
    ],
    [
      "adds a param as a list of options",
      sheet,
      [{ parameters: [ratio] }, { parameters: [ratio, select("style", "oil", "ink")] }],
      { params: oil },
    ],
    ["no longer lists any params", sheet, [{}, { parameters: undefined as never }], { params: oil }],
    [
      "renames a param by its spelling",
      "id,model,prompt,params.Aspect Ratio\na,paint,x,16:9\n",
      [{ parameters: [ratio] }, { parameters: [select("Aspect Ratio", "16:9")] }],
      {},
    ],
    [
      "makes free text of a list whose option a spreadsheet had changed",
      "id,model,prompt,params.quality\na,paint,x,TRUE\n",
      [{ parameters: [select("quality", "true", "false")] }, { parameters: [text("quality")] }],
      { repair: true },
    ],
    [
      "makes a list of free text that a spreadsheet had changed",
      "id,model,prompt,params.quality\na,paint,x,TRUE\n",
      [{ parameters: [text("quality")] }, { parameters: [select("quality", "true", "false")] }],
      { repair: true },
    ],
    ["asks for another input", sheet, [{}, { input_type: "text+image" }], {}],
    [
      "changes the default of a param",
      sheet,
      [{ parameters: [ratio] }, { parameters: [{ ...ratio, default: "1:1" }] }],
      {},
    ],
    ["removes a param that a default names", sheet, [{ parameters: [text("style")] }, {}], { params: oil }],
  ])("%s", async (_, rows, catalogues, change) => {
    const { second, keys } = await afterwards(rows, catalogues, change);
    expect(keys[1]).toEqual(keys[0]);
    expect(second).toMatchObject({ problems: [], due: 0, changed: [] });
  });

  test("says so, and how to make them with the new param", async () => {
    const { second } = await afterwards(sheet, [{}, { parameters: [text("style")] }], { params: oil });
    expect(second.notes).toContainEqual(
      'model paint takes "style" now (to make them with it, write it into the rows), but its items are paid for and stay as they are (rows 2, 3)',
    );
  });

  test("renames a category, also where its name is in the output", async () => {
    const named = "id,model,prompt,output\na,paint,x,{{ category }}/{{ id }}\n";
    const { first, second, keys } = await afterwards(named, [{}, { category: "picture" }]);
    expect(keys[1]).toEqual(keys[0]);
    expect(second.items.map(({ name }) => name)).toEqual(first.items.map(({ name }) => name));
  });

  test.each(["processing", "held", "unknown", "overdue", "ready"] as const)(
    "while it is %s",
    async (state) => {
      const { second } = await afterwards(sheet, [{}, { parameters: [text("style")] }], {
        params: oil,
        state,
      });
      expect(second.due).toBe(0);
    },
  );

  test("adds a param to a model of a chain", async () => {
    const job = `
defaults: { params: { style: oil } }
rows: [{ id: cup, prompt: x }]
steps:
  - { name: picture, model: paint }
  - { name: film, model: clip, image_url: "@picture" }
  - { name: other, model: all }
`;
    const { second, keys } = await afterwards(job, [{}, { parameters: [text("style")] }], {
      file: "job.yaml",
    });
    expect(keys[1]).toEqual(keys[0]);
    expect(second).toMatchObject({ problems: [], due: 0 });
  });

  test("adds a param to a repeated row of which only a part is made", async () => {
    const rows = "id,model,prompt,repeat\na,paint,x,3\nc,all,z,\n";
    const before = await planned(rows, { params: oil, models: catalogue({}) });
    const leftOut = new Map([["paint", new Set(["style"])]]);
    const existing = kept(before, "archived", "planned", "planned", "archived");
    const models = catalogue({ parameters: [text("style")] });
    const after = await planned(rows, { params: oil, models, existing, leftOut });
    expect(after.items.map(({ key }) => key)).toEqual(before.items.map(({ key }) => key));
    expect(after.due).toBe(2);
  });
});

describe("what a person changes is made anew", () => {
  const styled = { models: catalogue({ parameters: [text("style")] }) };

  test("a default that was not there before, although the model took it", async () => {
    const existing = kept(await planned(sheet, styled), "archived");
    expect((await planned(sheet, { ...styled, existing, params: oil })).due).toBe(3);
  });

  test("a param in the row, although the same was left out as a default", async () => {
    const existing = kept(await planned(sheet, { models: catalogue({}), params: oil }), "archived");
    const leftOut = new Map([["paint", new Set(["style"])]]);
    const now = "id,model,prompt,params.style\na,paint,x,oil\nb,paint,y,\nc,all,z,\n";
    const { items } = await planned(now, { ...styled, existing, leftOut, params: oil });
    expect(items.filter(({ due }) => due).map(({ rowId }) => rowId)).toEqual(["a"]);
  });

  test("items that were not paid for take the new param", async () => {
    const { second } = await afterwards(sheet, [{}, { parameters: [text("style")] }], {
      params: oil,
      state: "failed",
    });
    expect(second.items.map((item) => priceGroup(item))).toContain('["paint",[["style","oil"]]]');
  });
});
