import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { priceGroup, shortId } from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import type { Existing } from "../../src/plan/plan.js";
import { contentOf, kept, planOf } from "./account.js";

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

  test("in identical rows cost what was charged before, as in the plan's own sum", async () => {
    const charges = new Map([[priceGroup({ model: "paint", params: {} }), credits(5)]]);
    const { warnings, money } = await planOf("model,prompt\npaint,x\npaint,x\n", { charges });
    expect(money.needed).toBe(credits(10));
    expect(warnings).toMatchObject([{ kind: "identical_rows", copies: 1, credits: credits(5) }]);
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

describe("identical rows of which one goes", () => {
  const two = "id,model,prompt\na,paint,x\nb,paint,x\n";
  const standings = ({ items }: Awaited<ReturnType<typeof planOf>>) =>
    items.map(({ rowId, occurrence, standing, due }) => ({ rowId, occurrence, standing, due }));

  test("P2: the one that was made alone is not paid again when its twin goes", async () => {
    const [, b] = kept(await planOf(two), "archived") as [Existing, Existing];
    const alone = await planOf("id,model,prompt\nb,paint,x\n", { existing: [b] });
    expect(standings(alone)).toEqual([{ rowId: "b", occurrence: 2, standing: "archived", due: false }]);
    expect(alone.vanished).toEqual([]);
    // Another id is the same row still.
    const renamed = await planOf("id,model,prompt\nc,paint,x\n", { existing: [b] });
    expect(standings(renamed)).toEqual([{ rowId: "c", occurrence: 2, standing: "archived", due: false }]);
    // Beside a new twin as well.
    const again = await planOf(two, { existing: [b] });
    expect(standings(again)).toMatchObject([
      { rowId: "a", standing: "new" },
      { rowId: "b", standing: "archived" },
    ]);
  });

  test("P2: two of three that were made keep what they have", async () => {
    const [, b, c] = kept(await planOf(`${two}c,paint,x\n`), "archived") as [Existing, Existing, Existing];
    const left = await planOf("id,model,prompt\nb,paint,x\nc,paint,x\n", { existing: [b, c] });
    expect(standings(left)).toEqual([
      { rowId: "b", occurrence: 2, standing: "archived", due: false },
      { rowId: "c", occurrence: 3, standing: "archived", due: false },
    ]);
  });

  test("P2: what was made is taken before what failed, also without ids", async () => {
    const rows = (count: number) => `model,prompt\n${"paint,x\n".repeat(count)}`;
    const [failed, made] = kept(await planOf(rows(2)), "failed", "archived") as [Existing, Existing];
    const left = await planOf(rows(1), { existing: [failed, made] });
    expect(left.items).toMatchObject([{ key: made.key, standing: "archived" }]);
    const named = await planOf("id,model,prompt\nb,paint,x\n", {
      existing: kept(await planOf(two), "failed", "archived"),
    });
    expect(standings(named)).toMatchObject([{ rowId: "b", standing: "archived" }]);
  });

  test("P2: local files and outputs of other items are known for what they are", async () => {
    const localInputs = contentOf({ "cup.png": "sha256:01" });
    const input = "id,model,prompt,image_url\n";
    const files = { image_url: "sha256:01" };
    const [, b] = kept(
      await planOf(`${input}a,edit,x,cup.png\nb,edit,x,cup.png\n`, { localInputs }),
      "archived",
    ) as [Existing, Existing];
    const alone = await planOf(`${input}b,edit,x,cup.png\n`, { localInputs, existing: [{ ...b, files }] });
    expect(standings(alone)).toMatchObject([{ rowId: "b", standing: "archived" }]);

    const cup = `${input}cup,paint,c,\n`;
    const [parent, , d] = kept(
      await planOf(`${cup}c,edit,x,@cup\nd,edit,x,@cup\n`),
      "archived",
    ) as Existing[];
    const child = await planOf(`${cup}d,edit,x,@cup\n`, { existing: [parent as Existing, d as Existing] });
    expect(standings(child)).toMatchObject([
      { rowId: "cup" },
      { rowId: "d", standing: "archived", due: false },
    ]);
  });
});
