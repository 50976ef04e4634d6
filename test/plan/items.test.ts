import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { priceGroup, shortId, variantKey } from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import { allRows, type Existing } from "../../src/plan/plan.js";
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
      state: "new",
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

  test.each([1_024, 3_000])(
    "in identical rows are all different, also with %i rows before them",
    async (before) => {
      const rows = Array.from({ length: before }, (_, number) => `paint,p${number}\n`).join("");
      const { items } = await planOf(`model,prompt\n${rows}${"paint,x\n".repeat(3)}`);
      expect(items.slice(-3).map(({ occurrence }) => occurrence)).toEqual([1, 2, 3]);
      expect(new Set(items.map(({ key }) => key)).size).toBe(before + 3);
    },
  );

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
  const states = ({ items }: Awaited<ReturnType<typeof planOf>>) =>
    items.map(({ rowId, occurrence, state, due }) => ({ rowId, occurrence, state, due }));

  test("P2: the one that was made alone is not paid again when its twin goes", async () => {
    const [, b] = kept(await planOf(two), "archived") as [Existing, Existing];
    const alone = await planOf("id,model,prompt\nb,paint,x\n", { existing: [b] });
    expect(states(alone)).toEqual([{ rowId: "b", occurrence: 2, state: "archived", due: false }]);
    expect(alone.vanished).toEqual([]);
    // Another id is the same row still.
    const renamed = await planOf("id,model,prompt\nc,paint,x\n", { existing: [b] });
    expect(states(renamed)).toEqual([{ rowId: "c", occurrence: 2, state: "archived", due: false }]);
    // Beside a new twin as well.
    const again = await planOf(two, { existing: [b] });
    expect(states(again)).toMatchObject([
      { rowId: "a", state: "new" },
      { rowId: "b", state: "archived" },
    ]);
  });

  test("P2: two of three that were made keep what they have", async () => {
    const [, b, c] = kept(await planOf(`${two}c,paint,x\n`), "archived") as [Existing, Existing, Existing];
    const left = await planOf("id,model,prompt\nb,paint,x\nc,paint,x\n", { existing: [b, c] });
    expect(states(left)).toEqual([
      { rowId: "b", occurrence: 2, state: "archived", due: false },
      { rowId: "c", occurrence: 3, state: "archived", due: false },
    ]);
  });

  test("P2: what was made is taken before what failed, also without ids", async () => {
    const rows = (count: number) => `model,prompt\n${"paint,x\n".repeat(count)}`;
    const [failed, made] = kept(await planOf(rows(2)), "failed", "archived") as [Existing, Existing];
    const left = await planOf(rows(1), { existing: [failed, made] });
    expect(left.items).toMatchObject([{ key: made.key, state: "archived" }]);
    const named = await planOf("id,model,prompt\nb,paint,x\n", {
      existing: kept(await planOf(two), "failed", "archived"),
    });
    expect(states(named)).toMatchObject([{ rowId: "b", state: "archived" }]);
  });

  test.each(["dropped", "planned", "blocked"] as const)(
    "P2: what was made is taken before what is %s",
    async (state) => {
      const rows = (count: number) => `model,prompt\n${"paint,x\n".repeat(count)}`;
      const existing = kept(await planOf(rows(2)), state, "archived");
      const { items } = await planOf(rows(1), { existing });
      expect(items).toMatchObject([{ occurrence: 2, state: "archived" }]);
      // Its id and its file are called by the key that it has.
      const id = shortId(existing[1]?.key ?? "");
      expect(items).toMatchObject([{ rowId: id, name: id }]);
    },
  );

  test("P2: of several that were made the first is taken, in whatever order the job lists them", async () => {
    const rows = (count: number) => `model,prompt\n${"paint,x\n".repeat(count)}`;
    const [, two, three] = kept(await planOf(rows(3)), "archived") as [Existing, Existing, Existing];
    const taken = async (count: number, existing: Existing[]) =>
      (await planOf(rows(count), { existing })).items.map(({ occurrence, state }) => [occurrence, state]);
    expect(await taken(1, [three, two])).toEqual([[2, "archived"]]);
    expect(await taken(1, [three, { ...two, state: "failed" }])).toEqual([[3, "archived"]]);
    const failed = kept(await planOf(rows(3)), "failed", "failed", "archived");
    expect(await taken(2, failed)).toEqual([
      [1, "failed"],
      [3, "archived"],
    ]);
  });

  test("P2: a new twin takes what was made before what failed, and leaves the others theirs", async () => {
    const rows = ["a", "b", "c"].map((id) => `${id},paint,x,out/${id}\n`);
    const sheet = (...some: string[]) => `id,model,prompt,output\n${some.join("")}`;
    const existing = kept(await planOf(sheet(...rows)), "archived", "failed", "archived");
    const { items } = await planOf(sheet(rows[0] ?? "", "d,paint,x,out/d\n"), { existing });
    expect(items).toMatchObject([
      { rowId: "a", name: "out/a", occurrence: 1, state: "archived" },
      { rowId: "d", name: "out/d", occurrence: 3, state: "archived" },
    ]);
  });

  test("P2: a variant of one that goes does not make two of the others the same", async () => {
    const rows = (count: number) => `model,prompt\n${"paint,x\n".repeat(count)}`;
    const existing = kept(await planOf(rows(3)), "failed", "failed", "archived");
    const [, , third] = existing as [Existing, Existing, Existing];
    const variant: Existing = { ...third, key: variantKey(third.key, 2), rowId: `${third.rowId}-v2` };
    const { items } = await planOf(rows(2), { existing: [...existing, variant] });
    expect(items.map(({ occurrence, state }) => [occurrence, state])).toEqual([
      [1, "failed"],
      [3, "archived"],
    ]);
    expect(new Set(items.map(({ key }) => key)).size).toBe(2);
  });

  test("P2: two that take the output of another item keep a key of their own each", async () => {
    const sheet = "id,model,prompt,image_url\ncup,paint,c,\n,edit,x,@cup\n,edit,x,@cup\n";
    const existing = kept(await planOf(sheet), "archived", "failed", "archived");
    const { items } = await planOf(sheet, { existing });
    expect(items.map(({ occurrence, state }) => [occurrence, state])).toEqual([
      [1, "archived"],
      [1, "failed"],
      [2, "archived"],
    ]);
    expect(new Set(items.map(({ key }) => key)).size).toBe(3);
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
    expect(states(alone)).toMatchObject([{ rowId: "b", state: "archived" }]);

    const cup = `${input}cup,paint,c,\n`;
    const [parent, , d] = kept(
      await planOf(`${cup}c,edit,x,@cup\nd,edit,x,@cup\n`),
      "archived",
    ) as Existing[];
    const child = await planOf(`${cup}d,edit,x,@cup\n`, { existing: [parent as Existing, d as Existing] });
    expect(states(child)).toMatchObject([{ rowId: "cup" }, { rowId: "d", state: "archived", due: false }]);
  });
});

describe("identical rows are told", () => {
  const rows = (count: number, prompt = "x") => `paint,${prompt}\n`.repeat(count);
  const told = async (text: string, duplicates: "keep" | "merge" = "keep") =>
    (await planOf(`model,prompt\n${text}`, { duplicates })).warnings.map(({ message }) => message);

  test("with the first eight of them", async () => {
    const cost = (credits: number) =>
      `are identical; each is made and paid for (${credits} credits more than once; --duplicates merge avoids that)`;
    expect(await told(rows(8))).toEqual([`rows 2, 3, 4, 5, 6, 7, 8, 9 ${cost(28)}`]);
    expect(await told(rows(10))).toEqual([`rows 2, 3, 4, 5, 6, 7, 8, 9 and 2 more ${cost(36)}`]);
  });

  test("in a hundred groups, and counted with their cost beyond", async () => {
    const groups = (count: number) =>
      Array.from({ length: count }, (_, number) => rows(2, `p${number}`)).join("");
    expect(await told(groups(100))).toHaveLength(100);
    const kept = await told(groups(102));
    expect(kept).toHaveLength(101);
    expect(kept.at(-1)).toBe("2 more groups of identical rows; 8 credits more than once");
    const { warnings } = await planOf(`model,prompt\n${groups(102)}`);
    expect(warnings.at(-1)).toMatchObject({ credits: credits(8) });
    const merged = await planOf(`model,prompt\n${groups(102)}`, { duplicates: "merge" });
    expect(merged.warnings.at(-1)).toEqual({
      kind: "identical_rows",
      message: "2 more groups of identical rows; their rows share the same items",
      rows: [],
      copies: 0,
      credits: 0,
    });
    expect(merged.warnings[0]).toMatchObject({
      message: "rows 2, 3 are identical; they share the same items",
      copies: 1,
      credits: 0,
    });
  });

  test("as a problem of each later one, where they are to be refused", async () => {
    const { problems, warnings } = await planOf("model,prompt,image_url\npaint,x,\npaint,x,\n", {
      duplicates: "error",
    });
    expect(warnings).toEqual([]);
    expect(problems).toEqual([
      {
        place: { file: expect.any(String), row: 3, column: "prompt" },
        message: "the row is identical to row 2",
        expected: "rows that differ in model, prompt, params or inputs (or --duplicates keep or merge)",
        got: "x",
      },
    ]);
    const image = "animate,,https://example.com/a.png\n";
    const without = await planOf(`model,prompt,image_url\n${image}${image}`, { duplicates: "error" });
    expect(without.problems).toMatchObject([{ got: "no prompt" }]);
  });
});

describe("the names of an edition's files", () => {
  const name = async (edition: string) =>
    (await planOf("id,model,prompt\na,paint,x\n", { edition })).items[0]?.name;

  test("are in a folder of its own, and those of the first one are not", async () => {
    expect(await name("")).toBe("a");
    expect(await name("#2")).toBe("edition-2/a");
    expect(await name("take #2")).toBe("edition-take #2/a");
    expect(await name("2026-11-20 10:30/a\\b")).toBe("edition-2026-11-20 10-30-a-b/a");
  });
});

describe("identical rows that are merged", () => {
  test("are made as often as the largest row wants, with the names and ids of the rows that want them", async () => {
    const { items } = await planOf(
      "id,model,prompt,output,repeat\na,paint,x,one,1\nb,paint,x,two,3\nc,paint,x,three,2\n",
      { duplicates: "merge" },
    );
    expect(items.map(({ rowId, name, occurrence }) => [rowId, name, occurrence])).toEqual([
      ["a", "one", 1],
      ["b-2", "two-2", 2],
      ["b-3", "two-3", 3],
    ]);
  });

  test("P2: are the one that was made, where they were not merged before and the other failed", async () => {
    const two = "model,prompt\npaint,x\npaint,x\n";
    const existing = kept(await planOf(two), "failed", "archived");
    const merged = await planOf(two, { duplicates: "merge", existing });
    expect(merged.items).toMatchObject([{ occurrence: 2, state: "archived" }]);
    const selection = { ...allRows, onlyFailed: true };
    expect((await planOf(two, { duplicates: "merge", existing, selection })).due).toBe(0);
  });

  test("P2: keep the item that was made, whatever row it was made for", async () => {
    const two = "id,model,prompt\na,paint,x\nb,paint,x\n";
    const existing = kept(await planOf(two, { duplicates: "merge" }), "archived");
    const again = await planOf("id,model,prompt\nb,paint,x\n", { duplicates: "merge", existing });
    expect(again.items).toMatchObject([{ rowId: "b", occurrence: 1, state: "archived", due: false }]);
  });
});

describe("identical rows that take the output of another item", () => {
  const sheet = (...rows: string[]) =>
    `id,model,prompt,image_url,output,repeat\ncup,paint,c,,,1\n${rows.map((row) => `${row}\n`).join("")}`;
  const three = sheet("c,edit,x,@cup,,1", "d,edit,x,@cup,out/d,1", ",edit,x,@cup,,1");
  const warning = (rows: string, cost: number) =>
    `rows ${rows} are identical; each is made and paid for (${cost} credits more than once; --duplicates merge avoids that)`;

  test("keep their ids and names, and each has a key of its own", async () => {
    const { items, warnings } = await planOf(three);
    const [, , , last] = items;
    expect(items.map(({ rowId, name, occurrence }) => [rowId, name, occurrence])).toEqual([
      ["cup", "cup", 1],
      ["c", "c", 1],
      ["d", "out/d", 2],
      [shortId(last?.key ?? ""), shortId(last?.key ?? ""), 3],
    ]);
    expect(new Set(items.map(({ key }) => key)).size).toBe(4);
    expect(warnings.map(({ message }) => message)).toEqual([warning("3, 4, 5", 13)]);
  });

  test("are counted with their copies, each row once", async () => {
    const { warnings } = await planOf(sheet("c,edit,x,@cup,,1", "d,edit,x,@cup,,2"));
    expect(warnings).toMatchObject([
      { message: warning("3, 4", 13), rows: [3, 4], copies: 2, credits: credits(13) },
    ]);
  });

  test("are no mistake where they are copies of one row", async () => {
    const { problems, items } = await planOf(sheet("c,edit,x,@cup,,2"), { duplicates: "error" });
    expect(problems).toEqual([]);
    expect(items.map(({ rowId }) => rowId)).toEqual(["cup", "c", "c-2"]);
  });

  test("are not merged into one where a row wants several", async () => {
    const { items } = await planOf(sheet("c,edit,x,@cup,,1", "d,edit,x,@cup,,2"), { duplicates: "merge" });
    expect(items.map(({ rowId }) => rowId)).toEqual(["cup", "c", "d", "d-2"]);
  });

  test("have the names that they were given, whatever these look like", async () => {
    const { items } = await planOf(sheet(",edit,x,@cup,team@1,1", ",edit,y,@cup,@2,1"), { edition: "#2" });
    expect(items.map(({ name }) => name)).toEqual(["edition-2/cup", "edition-2/team@1", "edition-2/@2"]);
  });
});
