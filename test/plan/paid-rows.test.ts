import { describe, expect, test } from "vitest";
import type { Model } from "../../src/api/records.js";
import type { LocalInput } from "../../src/manifest/local-inputs.js";
import { openManifest } from "../../src/manifest/read.js";
import { fileWith } from "../manifest/folder.js";
import { contentOf, kept, models, plan, planOf } from "./account.js";

const sheet = "id,model,prompt,params.aspect_ratio\na,paint,x,16:9\nb,paint,y,1:1\nc,edit,z,\n";
const some = sheet.replace(/c,edit.*\n/, "");
const withoutPaint = models.filter(({ model_key: key }) => key !== "paint");
const withParams = (parameters: (typeof models)[number]["parameters"]) =>
  models.map((model) => (model.model_key === "paint" ? { ...model, parameters: parameters ?? [] } : model));
const square = withParams(
  models[0]?.parameters?.map((each) => ({ ...each, options: each.options?.slice(0, 1) ?? [] })),
);

describe("what the service has withdrawn", () => {
  test.each([
    ["a model", withoutPaint, "image"],
    ["an option", square, "image"],
    ["a param", withParams([]), "image"],
  ])("%s: the items that were made with it stay as they are", async (_, now) => {
    const existing = kept(await planOf(some), "archived");
    const { items, problems, due, money, states, vanished, notes } = await planOf(some, {
      existing,
      models: now,
    });
    expect(problems).toEqual([]);
    expect(items.map(({ key }) => key)).toEqual(existing.map(({ key }) => key));
    expect(items.map(({ category }) => category)).toEqual(["image", "image"]);
    expect({ due, states, vanished }).toEqual({ due: 0, states: { archived: 2 }, vanished: [] });
    expect(money.needed).toBe(0);
    expect(notes.filter((note) => note.endsWith("(row 2)") || note.endsWith("(rows 2, 3)"))).toEqual([
      expect.stringMatching(/^(unknown|model paint has no|parameter).*, but its items are paid for and stay/),
    ]);
  });

  test.each(["processing", "held", "ready", "unknown"] as const)(
    "so do those that are %s: they are paid for, or may be",
    async (state) => {
      const existing = kept(await planOf(some), state);
      expect((await planOf(some, { existing, models: withoutPaint })).problems).toEqual([]);
    },
  );

  test.each(["failed", "dropped", "planned"] as const)("those that are %s cannot be made", async (state) => {
    const existing = kept(await planOf(some), "archived", state);
    const { problems, items } = await planOf(some, { existing, models: withoutPaint });
    expect(problems).toMatchObject([{ place: { row: 3, id: "b" }, message: 'unknown model "paint"' }]);
    expect(items.map(({ rowId }) => rowId)).toEqual(["a"]);
  });

  test("items of another edition do not count", async () => {
    const existing = kept(await planOf(some, { edition: "spring" }), "archived");
    const { problems, vanished } = await planOf(some, { existing, models: withoutPaint });
    expect(problems).toHaveLength(2);
    expect(vanished).toEqual([]);
  });

  test("a row that is new, changed, or a copy more, cannot be made with it", async () => {
    const existing = kept(
      await planOf("id,model,prompt,repeat\na,paint,x,2\nb,paint,y,\n"),
      "archived",
      "archived",
      "archived",
    );
    const now = "id,model,prompt,repeat\na,paint,x,3\nb,paint,other,\nc,paint,y,\n";
    const { problems } = await planOf(now, { existing, models: withoutPaint });
    expect(problems.map(({ place }) => place.row)).toEqual([2, 3]);
    const twice = "id,model,prompt,repeat\na,paint,x,\nsame,paint,x,\none more,paint,x,\n";
    const more = await planOf(twice, { existing, models: withoutPaint });
    expect(more.problems.map(({ place }) => place.row)).toEqual([4]);
  });

  describe("by a chain", () => {
    const chain = `
rows:
  - { id: cup, thing: a cup }
  - { id: jug, thing: a jug }
steps:
  - { name: picture, model: paint, prompt: "{{ thing }}" }
  - { name: clip, model: animate, image_url: "@picture" }
  - { name: longer, model: extend, video_url: "@clip" }
`;
    const job = async (text: string, change: Parameters<typeof plan>[1] = {}) =>
      plan(await openManifest(await fileWith("job.yaml", text)), change);
    const without = (...gone: string[]) => models.filter(({ model_key: key }) => !gone.includes(key));

    test("stays as it is in each of its steps", async () => {
      const before = await job(chain);
      const existing = kept(before, "archived");
      for (const gone of [["paint"], ["animate"], ["paint", "animate", "extend"]]) {
        const { items, problems, due } = await job(chain, { existing, models: without(...gone) });
        expect(problems).toEqual([]);
        expect(items.map(({ key, parents }) => [key, parents])).toEqual(
          before.items.map(({ key, parents }) => [key, parents]),
        );
        expect(due).toBe(0);
      }
    });

    test("is recognised without an id and if it is repeated, but not with other params", async () => {
      const unnamed = chain.replaceAll(/id: \w+, /g, "");
      const repeated = chain.replace("name: clip,", "name: clip, repeat: 2,");
      const paramed = chain.replace("name: clip,", "name: clip, params: { speed: slow },");
      const withSpeed = models.map((model) =>
        model.model_key === "animate"
          ? { ...model, parameters: [{ key: "speed", label: "Speed", type: "text" }] }
          : model,
      );
      for (const [before, now, wrong] of [
        [unnamed, unnamed, 0],
        [repeated, repeated, 0],
        [chain, paramed, 2],
      ] as const) {
        const existing = kept(await job(before, { models: withSpeed }), "archived");
        const { problems, due } = await job(now, { existing, models: without("animate") });
        expect(problems.filter(({ message }) => message === 'unknown model "animate"')).toHaveLength(wrong);
        expect(due).toBe(0);
      }
    });

    test("cannot be made if what it is made of has changed, and neither can what is made of it", async () => {
      const existing = kept(await job(chain), "archived");
      const changed = chain.replace("a cup", "a bowl");
      const { items, problems, due } = await job(changed, { existing, models: without("animate") });
      expect(problems.map(({ place, message }) => [place.id, message])).toEqual([
        ["cup-clip", 'unknown model "animate"'],
        ["cup-longer", "the item of @clip cannot be made, because its own row has a problem"],
      ]);
      expect(items.map(({ rowId }) => rowId)).toEqual([
        "cup-picture",
        "jug-picture",
        "jug-clip",
        "jug-longer",
      ]);
      expect(due).toBe(1);
    });
  });

  describe("does not matter either where somebody has tidied away", () => {
    const photos = "id,model,prompt,image_url,repeat\na,edit,in blue,cup.png,2\nb,edit,in red,jug.png,\n";
    const files = { "cup.png": "sha256:c", "jug.png": "sha256:j" };
    const gone = (...names: string[]) => {
      const { found, read } = contentOf(files);
      const wrong: LocalInput = { wrong: "there is no such file", expected: "a file", isGone: true };
      return { found: new Map([...found, ...names.map((name) => [name, wrong] as const)]), read };
    };

    test("the input files of items that are paid for", async () => {
      const existing = kept(await planOf(photos, { localInputs: contentOf(files) }), "archived");
      const localInputs = gone("cup.png", "jug.png");
      for (const now of [models, models.filter(({ model_key: key }) => key !== "edit")]) {
        const { items, problems, due } = await planOf(photos, { existing, localInputs, models: now });
        expect(problems).toEqual([]);
        expect(items.map(({ key, files }) => [key, files])).toEqual(
          existing.map(({ key, files }) => [key, files]),
        );
        expect(due).toBe(0);
      }
    });

    test("the newest content of a file that has changed in between, or the one that was put back", async () => {
      const one = photos.replace(/b,edit.*\n/, "");
      const withContent = (sha256: string, change = {}) =>
        planOf(one, { localInputs: contentOf({ "cup.png": sha256 }), ...change });
      const older = kept(await withContent("sha256:c"), "archived").map((item) => ({
        ...item,
        vanished: true,
      }));
      const newer = kept(await withContent("sha256:d", { existing: older }), "archived");
      const again = await planOf(one, { existing: [...older, ...newer], localInputs: gone("cup.png") });
      expect(again.items.map(({ key }) => key)).toEqual(newer.map(({ key }) => key));
      expect(again.restored).toEqual([]);
      const back = [
        ...older.map((item) => ({ ...item, vanished: false })),
        ...newer.map((item) => ({ ...item, vanished: true })),
      ];
      const put = await planOf(one, { existing: back, localInputs: gone("cup.png") });
      expect(put.items.map(({ key }) => key)).toEqual(older.map(({ key }) => key));
    });

    test("not for a row without an id, which nothing tells from another one", async () => {
      const unnamed = "model,prompt,image_url\nedit,in blue,cup.png\n";
      const existing = kept(await planOf(unnamed, { localInputs: contentOf(files) }), "archived");
      const { problems } = await planOf(unnamed, { existing, localInputs: gone("cup.png") });
      expect(problems).toHaveLength(1);
    });

    test("but it does for what is still to be made, and for another file", async () => {
      const existing = kept(
        await planOf(photos, { localInputs: contentOf(files) }),
        "archived",
        "archived",
        "failed",
      );
      const made = await planOf(photos, { existing, localInputs: gone("cup.png", "jug.png") });
      expect(made.problems.map(({ place }) => place.row)).toEqual([3]);
      const other = photos.replace("cup.png", "cup 2.png").replace("jug.png", "pot.png");
      const localInputs = gone("cup 2.png", "pot.png");
      const { problems } = await planOf(other, { existing: kept(made, "archived"), localInputs });
      expect(problems.map(({ place }) => place.row)).toEqual([2, 3]);
    });
  });

  describe("a param that is a default of the job", () => {
    const job = async (mood: string, change: Parameters<typeof plan>[1] = {}) => {
      const rows = [
        { id: "a", model: "paint", prompt: "x" },
        { id: "b", model: "sing", prompt: "y" },
      ];
      const text = JSON.stringify({ defaults: { params: { mood, tempo: "slow" } }, rows });
      return plan(await openManifest(await fileWith("job.json", text)), change);
    };
    const tempo = { key: "tempo", label: "Tempo", type: "text" };
    const sing = { ...(models[0] as Model), model_key: "sing", category: "audio", parameters: [tempo] };

    test("is left out of an item that was paid for without it, whatever the row had before", async () => {
      const text = JSON.stringify({
        defaults: { params: { mood: "dark" } },
        rows: [
          { id: "a", model: "paint", prompt: "x" },
          { id: "b", model: "hum", prompt: "y" },
        ],
      });
      const asked = async (change: Parameters<typeof plan>[1]) =>
        plan(await openManifest(await fileWith("job.json", text)), change);
      const hum = { ...(models[0] as Model), model_key: "hum" };
      const older = kept(await asked({ models: [...models, hum] }), "archived");
      const now = [...withParams([]), hum];
      const newer = await asked({ models: now });
      const existing = [...older.map((item) => ({ ...item, vanished: true })), ...kept(newer, "archived")];
      const again = await asked({ existing, models: now });
      expect(again.items.map(({ key }) => key)).toEqual(newer.items.map(({ key }) => key));
    });

    test("of many: with all that the job has, or with none", async () => {
      const keys = ["mood", "b", "c", "d", "e"];
      const params = Object.fromEntries(keys.map((key) => [key, "x"]));
      const text = JSON.stringify({ defaults: { params }, rows: [{ id: "a", model: "paint", prompt: "x" }] });
      const asked = async (change: Parameters<typeof plan>[1]) =>
        plan(await openManifest(await fileWith("job.json", text)), change);
      const all = withParams(keys.map((key) => ({ key, label: key, type: "text" })));
      const existing = kept(await asked({ models: all }), "archived");
      expect((await asked({ existing, models: withoutPaint })).problems).toEqual([]);
      const few = kept(await asked({ models: all.map((model) => ({ ...model })) }), "archived").map(
        (item) => ({
          ...item,
          key: "k1:other",
        }),
      );
      expect((await asked({ existing: few, models: withoutPaint })).problems).toHaveLength(1);
    });

    test.each([
      ["listed without it", withParams([])],
      ["gone", withoutPaint],
    ])("P2: keeps the items of a model that is %s, so that nothing is paid again", async (_, now) => {
      const before = await job("dark", { models: [...models, sing] });
      const existing = kept(before, "archived", "archived");
      const again = await job("dark", { existing, models: [...now, sing] });
      expect(again.problems).toEqual([]);
      expect(again.items.map(({ key }) => key)).toEqual(before.items.map(({ key }) => key));
      expect(again.due).toBe(0);
      const changed = await job("light", { existing, models: [...now, sing] });
      expect(changed.problems).toMatchObject([{ place: { id: "a" } }]);
    });
  });
});
