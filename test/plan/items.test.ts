import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shortId } from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import { contentOf, planOf } from "./account.js";

test("a row becomes an item with everything that its submission needs", async () => {
  const { items } = await planOf(
    "id,model,prompt,params.aspect_ratio,priority,season\na,paint,x,16:9,5,late summer\n",
  );
  expect(items).toEqual([
    {
      key: expect.stringMatching(/^k1:[0-9a-f]{64}$/),
      edition: "",
      occurrence: 1,
      variant: 1,
      position: 0,
      priority: 5,
      rowNumber: 2,
      rowId: "a",
      name: "a",
      model: "paint",
      category: "image",
      prompt: "x",
      params: { aspect_ratio: "16:9" },
      inputs: {},
      cells: [
        ["id", "a"],
        ["model", "paint"],
        ["prompt", "x"],
        ["params.aspect_ratio", "16:9"],
        ["priority", "5"],
        ["season", "late summer"],
      ],
      price: credits(4),
      standing: "new",
      due: true,
      order: 0,
      fits: true,
    },
  ]);
});

test("a row without an id is called by the first ten digits of its key", async () => {
  const { items } = await planOf("model,prompt\npaint,x\n");
  expect(items[0]?.rowId).toBe(shortId(items[0]?.key ?? ""));
  expect(items[0]?.name).toMatch(/^[0-9a-f]{10}$/);
});

describe("copies", () => {
  test("of one row have ids, names and occurrences of their own; the first keeps the plain ones", async () => {
    const { items, warnings } = await planOf("id,model,prompt,output,repeat\na,paint,x,out/cup.png,3\n");
    expect(items.map(({ rowId, name, occurrence }) => [rowId, name, occurrence])).toEqual([
      ["a", "out/cup", 1],
      ["a-2", "out/cup-2", 2],
      ["a-3", "out/cup-3", 3],
    ]);
    expect(new Set(items.map(({ key }) => key)).size).toBe(3);
    expect(warnings).toEqual([]);
  });

  test("of rows without ids are called by their own keys", async () => {
    const { items } = await planOf("model,prompt,repeat\npaint,x,2\n");
    expect(items.map(({ rowId }) => rowId)).toEqual(items.map(({ key }) => shortId(key)));
  });

  test("in identical rows go on counting, with a warning that names the rows and their cost", async () => {
    const { items, warnings } = await planOf(
      "id,model,prompt,repeat\na,paint,x,1\nb,paint,y,1\nc,paint, x ,2\nd,paint,x,1\n",
    );
    expect(items.map(({ rowId, occurrence }) => [rowId, occurrence])).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 2],
      ["c-2", 3],
      ["d", 4],
    ]);
    expect(warnings).toMatchObject([
      { kind: "identical_rows", rows: [2, 4, 5], copies: 3, credits: credits(12) },
    ]);
  });

  test("keep their keys when rows change places: what is paid does not depend on the order", async () => {
    const keys = async (...rows: string[]) =>
      new Set((await planOf(`model,prompt\n${rows.join("\n")}\n`)).items.map(({ key }) => key));
    expect(await keys("paint,x", "paint,y", "paint,x")).toEqual(await keys("paint,x", "paint,x", "paint,y"));
  });
});

test("ids, outputs and priority do not change what is paid; model, prompt, params and edition do", async () => {
  const key = async (row: string, edition = "") =>
    (await planOf(`id,output,priority,model,prompt,params.aspect_ratio\n${row}\n`, { edition })).items[0]
      ?.key;
  const first = await key("a,o,1,paint,x,1:1");
  expect(await key("b,p,2,paint,x,1:1")).toBe(first);
  expect(await key("a,o,1,paint,z,1:1")).not.toBe(first);
  expect(await key("a,o,1,paint,x,16:9")).not.toBe(first);
  expect(await key("a,o,1,paint,x,1:1", "2026-11-20")).not.toBe(first);
});

test("a local file counts by its content, and goes to the service by its path", async () => {
  const item = async (sha256: string) => {
    const localInputs = contentOf({ "cup.png": sha256 });
    return (await planOf("model,image_url\nanimate,cup.png\n", { localInputs })).items[0];
  };
  expect((await item("sha256:aa"))?.inputs).toEqual({ image_url: "cup.png" });
  expect((await item("sha256:aa"))?.key).not.toBe((await item("sha256:bb"))?.key);
});

test("items go by priority, the higher first, and within one by the order of the manifest", async () => {
  const { items } = await planOf(
    "id,model,prompt,priority\na,paint,1,\nb,paint,2,-1\nc,paint,3,9\nd,paint,4,\n",
  );
  expect(items.map(({ rowId, order }) => [rowId, order])).toEqual([
    ["a", 1],
    ["b", 3],
    ["c", 0],
    ["d", 2],
  ]);
});

test("keys and ids of a plan's items are all different, whatever rows repeat", async () => {
  const row = fc.tuple(fc.constantFrom("x", "y", " x"), fc.integer({ min: 1, max: 4 }));
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 8 }), async (rows) => {
      const lines = rows.map(([prompt, repeat]) => `paint,${prompt},${repeat}`);
      const { items } = await planOf(`model,prompt,repeat\n${lines.join("\n")}\n`);
      expect(items).toHaveLength(rows.reduce((sum, [, repeat]) => sum + repeat, 0));
      expect(new Set(items.map(({ key }) => key)).size).toBe(items.length);
      expect(new Set(items.map(({ rowId }) => rowId)).size).toBe(items.length);
    }),
    { numRuns: 40 },
  );
});
