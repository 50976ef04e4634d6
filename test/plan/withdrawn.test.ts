import { describe, expect, test } from "vitest";
import type { Model } from "../../src/api/records.js";
import { openManifest } from "../../src/manifest/read.js";
import { fileWith } from "../manifest/folder.js";
import { kept, models, plan, planOf } from "./account.js";

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
    const { items, problems, due, money, standings, vanished } = await planOf(some, {
      existing,
      models: now,
    });
    expect(problems).toEqual([]);
    expect(items.map(({ key }) => key)).toEqual(existing.map(({ key }) => key));
    expect(items.map(({ category }) => category)).toEqual(["image", "image"]);
    expect({ due, standings, vanished }).toEqual({ due: 0, standings: { archived: 2 }, vanished: [] });
    expect(money.needed).toBe(0);
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

    test.each([
      ["listed without it", withParams([])],
      ["gone", withoutPaint],
    ])("keeps the items of a model that is %s, so that nothing is paid again", async (_, now) => {
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
