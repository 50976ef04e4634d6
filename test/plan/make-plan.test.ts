import { describe, expect, test } from "vitest";
import { openManifest } from "../../src/manifest/read.js";
import { begin, differences } from "../../src/plan/make-plan.js";
import { allRows, type Existing } from "../../src/plan/plan.js";
import { openDraft } from "../../src/store/draft/draft.js";
import { fileWith } from "../manifest/folder.js";
import { kept, me, plan, planOf } from "./account.js";

describe("how a row's request has changed is told", () => {
  const content = { model: "paint", prompt: "x", params: {}, inputs: {} };

  test("by the fields that differ, with what was and what is", () => {
    const old = { ...content, params: { size: "2k", mood: "warm" }, inputs: { image_url: "a.png" } };
    const now = { ...content, model: "edit", prompt: null, params: { size: "4k", hd: "1" }, inputs: {} };
    expect(differences(old, now)).toEqual([
      { field: "model", from: "paint", to: "edit" },
      { field: "prompt", from: "x", to: null },
      { field: "params.hd", from: null, to: "1" },
      { field: "params.mood", from: "warm", to: null },
      { field: "params.size", from: "2k", to: "4k" },
      { field: "image_url", from: "a.png", to: null },
    ]);
  });

  test("but not by what nobody sees", () => {
    const now = { ...content, prompt: " x ", params: { mood: "" } };
    expect(differences(content, now)).toEqual([]);
  });

  test("by the inputs that have other content, where all is written as before", () => {
    const inputs = { image_url: "@cup", video_url: "a.mp4", audio_url: "https://example.com/a.mp3" };
    expect(differences({ ...content, inputs }, { ...content, inputs })).toEqual([
      { field: "image_url", from: "the previous @cup", to: "the new @cup" },
      {
        field: "video_url",
        from: "the previous file content",
        to: "the current file content",
        file: "a.mp4",
      },
    ]);
  });
});

const job = (text: string, change = {}) =>
  fileWith("job.yaml", text).then(async (file) => plan(await openManifest(file), change));

const approved = (rows: string) => `
rows: [${rows}]
steps:
  - { name: picture, model: paint, prompt: "{{ id }}", approve: true }
  - { name: clip, model: animate, image_url: "@picture" }
`;

test("items that wait for a person are noted, one or several", async () => {
  const note = (items: string, whose: string) =>
    `${items} will wait for your approval (\`bulkgen approve\`) before anything is made of ${whose} outputs`;
  expect((await job(approved("{ id: cup }"))).notes).toEqual([note("1 item", "its")]);
  expect((await job(approved("{ id: cup }, { id: jug }"))).notes).toEqual([note("2 items", "their")]);
});

test("parents that are added to a selection are noted, one or several, and none where nothing is selected", async () => {
  const text = "id,model,prompt,image_url\na,paint,x,\nb,animate,,@a\n";
  const selected = { selection: { ...allRows, filters: [{ key: "id", pattern: "b" }] } };
  expect((await planOf(text, selected)).notes).toEqual([
    "1 item is added to the selection: selected items take their outputs",
  ]);
  expect((await planOf(text)).notes).toEqual([]);
});

test("a manifest without rows has no plan, and its problems are told", async () => {
  const draft = openDraft();
  expect(await begin(await openManifest(await fileWith("sheet.csv", "id,model,prompt\n")), draft)).toBeNull();
  draft.close();
  expect(await planOf("id,model,prompt\n")).toMatchObject({
    items: [],
    problems: [{ place: { row: null } }],
  });
});

test("rows before the first good one are told too", async () => {
  const { items, problems } = await planOf("id,model,prompt\na,paint\nb,paint\nc,paint,x\n");
  expect(problems.map(({ place }) => place.row)).toEqual([2, 3]);
  expect(items.map(({ rowId }) => rowId)).toEqual(["c"]);
});

test("a row that was told to be wrong while it was read makes nothing, and neither do the rows that share its id", async () => {
  const { problems, items } = await planOf(
    "id,model,prompt,repeat\na,paint,x,none\nb,paint,y,1\na,paint,z,1\n",
  );
  expect(problems.map(({ place, message }) => [place.row, message.includes("same id")])).toEqual([
    [2, false],
    [4, true],
  ]);
  expect(items.map(({ rowId }) => rowId)).toEqual(["b"]);
});

test("a row that is wrong says in the sheet what was found first", async () => {
  const { sheet, problems } = await planOf(
    "id,model,prompt,repeat,priority\na,nobody,x,none,high\nb,nobody,y,1,1\nc,paint,z,1,1\n",
  );
  const [repeat, , model] = problems.map(({ message }) => message);
  expect(sheet.rows.map(({ problem }) => problem)).toEqual([repeat, model, null]);
  expect([repeat, model]).toEqual([expect.stringContaining("repeat"), 'unknown model "nobody"']);
});

test("a manifest that asks for more items than anybody means has no plan, and only that is told", async () => {
  const rows = ["nobody", "paint", "paint"].map((model, at) => ({ model, prompt: `x${at}` }));
  const file = await fileWith("job.json", JSON.stringify({ rows, matrix: { lang: ["en", "de"] } }));
  const { items, problems } = await plan(await openManifest(file, { itemsMax: 5 }));
  expect(items).toEqual([]);
  expect(problems.map(({ message }) => message)).toEqual([
    "the manifest asks for 6 items (3 rows × 2 of lang)",
  ]);
});

test("a run that credits do not suffice for is bound by them", async () => {
  const binds = async (balance: number) =>
    (await planOf("id,model,prompt\na,paint,x\nb,paint,y\n", { me: me(balance) })).requests.forecast.binds;
  expect(await binds(7)).toBe("credits");
  expect(await binds(8)).toBe("generation");
});

test("a column that is a parameter of models that no row names is no mistake", async () => {
  const warnings = async (row: string) =>
    (await planOf(`id,model,prompt,image_url,mood\na,${row},warm\n`)).warnings;
  expect(await warnings("edit,x,https://example.com/a.png")).toEqual([]);
  expect(await warnings("paint,x,")).toMatchObject([{ kind: "unused_param_column", models: ["paint"] }]);
});

test("missing files are made again only if that is asked for", async () => {
  const text = "id,model,prompt\na,paint,x\nb,paint,y\n";
  const before = await planOf(text);
  const existing = kept(before, "archived");
  const missing = new Set([before.items[0]?.key ?? ""]);
  const again = (change = {}) => planOf(text, { existing, missing, ...change });
  const report = await again();
  expect(report).toMatchObject({ due: 0, missing: [{ rowId: "a", key: before.items[0]?.key }] });
  expect(report.warnings[0]?.message).toContain("--missing pay makes them again for 4 credits");
  expect((await again({ onMissing: "fetch" })).due).toBe(0);
  expect(await again({ onMissing: "pay" })).toMatchObject({ due: 1, money: { needed: 4_000_000 } });
  expect((await planOf(text, { existing })).missing).toEqual([]);
});

test("a dropped item comes back with its row, unless it was submitted before: then a person has skipped it", async () => {
  const text = "id,model,prompt\na,paint,x\n";
  const [dropped] = kept(await planOf(text), "dropped") as [Existing];
  const due = async (change: Partial<Existing>) =>
    (await planOf(text, { existing: [{ ...dropped, ...change }] })).due;
  expect([await due({}), await due({ attempted: false }), await due({ attempted: true })]).toEqual([1, 1, 0]);
});

test("a default that one model takes and another does not is left out for that one alone, and noted with all such models", async () => {
  const file = await fileWith(
    "job.json",
    JSON.stringify({
      defaults: { params: { mood: "warm" } },
      rows: [
        { id: "a", model: "edit", prompt: "x", image_url: "https://example.com/a.png" },
        { id: "b", model: "animate", image_url: "https://example.com/b.png" },
        { id: "c", model: "paint", prompt: "x" },
      ],
    }),
  );
  const { items, notes, problems } = await plan(await openManifest(file));
  expect(problems).toEqual([]);
  expect(items.map(({ params }) => params)).toEqual([{}, {}, { mood: "warm" }]);
  expect(notes).toEqual(["the default mood is left out for edit, animate, which do not accept it"]);
});

test("a default is no problem beside a row whose model does not exist", async () => {
  const defaults = { params: { mood: "warm" } };
  const rows = [
    { id: "a", model: "nobody", prompt: "x" },
    { id: "b", model: "paint", prompt: "y" },
  ];
  const file = await fileWith("job.json", JSON.stringify({ defaults, rows }));
  const { items, problems } = await plan(await openManifest(file));
  expect(problems.map(({ message }) => message)).toEqual(['unknown model "nobody"']);
  expect(items.map(({ params }) => params)).toEqual([{ mood: "warm" }]);
});

test("where the job says that inputs are published is part of its plan", async () => {
  const text = (publish: string) => `${publish}rows: [{ id: a, model: paint, prompt: x }]\n`;
  expect((await job(text(""))).publish).toBeNull();
  expect((await job(text('publish: { to: "s3://inputs/photos", for: 2h }\n'))).publish).toEqual({
    to: "s3://inputs/photos",
    expiresMs: 7_200_000,
  });
});
