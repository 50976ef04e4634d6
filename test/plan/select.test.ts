import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allRows, type Existing, type Selection } from "../../src/plan/plan.js";
import {
  isEverything,
  KeyWatch,
  lotOf,
  matcherOf,
  select,
  selectableItem,
  selectionText,
} from "../../src/plan/select.js";
import { planOf, type WholePlan } from "./account.js";

const sheet = [
  "id,model,prompt,product,params.mood",
  "cup-red,paint,a red cup,Cup,warm",
  "cup-blue,paint,a blue cup,Cup,cold",
  "pot-red,paint,a red pot,Pot,warm",
  "pot-blue,paint,a blue pot,Pot,",
  "moving,animate,,Film,",
].join("\n");
const valid = sheet.replace("moving,animate,,Film,", "lid,paint,a lid,Lid,");

async function selected(change: Partial<Selection>, text = valid): Promise<string[]> {
  const plan = await planOf(text, { selection: { ...allRows, ...change } });
  expect(plan.problems).toEqual([]);
  return plan.items.map(({ rowId }) => rowId);
}

const filter = (...pairs: [string, string][]) => ({
  filters: pairs.map(([key, pattern]) => ({ key, pattern })),
});

describe("a selection", () => {
  test("by columns of any kind: values of one key are alternatives, every key must match", async () => {
    expect(await selected(filter(["product", "cup"]))).toEqual(["cup-red", "cup-blue"]);
    expect(await selected(filter(["ID", "*-red"]))).toEqual(["cup-red", "pot-red"]);
    expect(await selected(filter(["product", "Cup"], ["product", "p?t"], ["params.mood", "warm"]))).toEqual([
      "cup-red",
      "pot-red",
    ]);
    expect(await selected(filter(["params.mood", ""]))).toEqual(["pot-blue", "lid"]);
    const shouted = "id,model,prompt,Params.Mood\na,paint,x,warm\nb,paint,y,cold\n";
    expect(await selected(filter(["params.mood", "warm"]), shouted)).toEqual(["a"]);
    expect(await selected(filter(["prompt", "a r.d cup"], ["prompt", "a lid"]))).toEqual(["lid"]);
    expect(await selected(filter(["category", "IMAGE"]))).toHaveLength(5);
  });

  test("by row numbers as the spreadsheet shows them, then the first of what is left", async () => {
    expect(await selected({ range: { from: 3, to: 4 } })).toEqual(["cup-blue", "pot-red"]);
    expect(await selected({ range: { from: 4, to: Number.POSITIVE_INFINITY }, first: 2 })).toEqual([
      "pot-red",
      "pot-blue",
    ]);
  });

  test("by lot: the same seed draws the same rows, and a row that is added moves the draw by one at most", () => {
    const rows = (names: string[]) =>
      names.map((name, index) => ({ name, number: index + 2, failed: false, values: new Map() }));
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 40 }),
        fc.nat(40),
        fc.string(),
        (names, count, seed) => {
          const draw = (some: string[]) =>
            select(rows(some), { ...allRows, sample: count + 1, seed }).map(({ name }) => name);
          const drawn = draw(names);
          expect(drawn).toHaveLength(Math.min(count + 1, names.length));
          const without = new Set(draw(names.slice(1)));
          expect(drawn.filter((name) => !without.has(name)).length).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  test("leaves items as they are whose rows are not selected: they neither vanish nor change", async () => {
    const before = await planOf(valid);
    const existing: Existing[] = before.items.map((item) => ({ ...item, state: "planned" }));
    const plan = await planOf(valid, { existing, selection: { ...allRows, first: 1 } });
    expect(plan.vanished).toEqual([]);
    expect(plan.unselected).toEqual(before.items.slice(1).map(({ key }) => key));
    expect(plan.selection).toEqual({ text: "--first 1", rows: 1, of: 5 });
  });

  test("does not change what a row is: identical rows keep their places in the count", async () => {
    const twins = "id,model,prompt\na,paint,x\nb,paint,x\n";
    const all = await planOf(twins);
    const second = await planOf(twins, { selection: { ...allRows, ...filter(["id", "b"]) } });
    expect(second.items[0]?.key).toBe(all.items[1]?.key);
  });

  test("does not report problems in unselected rows, and says how many there are", async () => {
    const plan = await planOf(sheet, { selection: { ...allRows, first: 2 } });
    expect(plan.problems).toEqual([]);
    expect(plan.notes).toContain("1 problem in rows that are not selected");
    const wrong = await planOf(sheet, { selection: { ...allRows, ...filter(["id", "moving"]) } });
    expect(wrong.problems).toHaveLength(1);
  });

  test("is not stopped by unselected rows that cannot be read; those that it names are problems", async () => {
    const broken = "id,model,prompt\na,paint,x\nb,paint\nc,paint,y,,stray\nd,paint,z\n";
    const problemsOf = async (change: Partial<Selection>) =>
      (await planOf(broken, { selection: { ...allRows, ...change } })).problems.map(({ place }) => place.row);
    expect(await problemsOf(filter(["id", "a"]))).toEqual([]);
    expect(await problemsOf({ range: { from: 2, to: 3 } })).toEqual([3]);
    expect(await problemsOf(filter(["id", "b"], ["id", "d"]))).toEqual([3]);
    expect(await problemsOf({})).toEqual([3, 4]);
    expect(await problemsOf({ first: 1 })).toEqual([]);
    expect(await problemsOf({ first: 2 })).toEqual([3, 4]);
    expect(await problemsOf({ first: 3 })).toEqual([3, 4]);
    expect(await problemsOf({ onlyFailed: true })).toEqual([]);
  });

  test("that names a column which no row has, or leaves no row, is a problem of the manifest", async () => {
    const typo = await planOf(valid, { selection: { ...allRows, ...filter(["produkt", "cup"]) } });
    expect(typo.problems).toMatchObject([
      { message: '--filter names "produkt", which no row has', nearest: "product" },
    ]);
    const none = await planOf(valid, { selection: { ...allRows, ...filter(["product", "vase"]) } });
    expect(none.problems).toMatchObject([
      { message: "no row is selected by --filter product=vase", expected: "at least one of the 5 rows" },
    ]);
  });
});

describe("--only-failed", () => {
  const states = (plan: WholePlan, state: Existing["state"]): Existing[] =>
    plan.items.map((item) => ({ ...item, state }));

  test("takes rows that failed, also after they were mended, and pays for them", async () => {
    const before = await planOf(valid);
    const [red, blue, ...others] = states(before, "archived") as [Existing, Existing, ...Existing[]];
    const existing = [{ ...red, state: "failed" as const }, { ...blue, state: "failed" as const }, ...others];
    const mended = valid.replace("a blue cup", "a navy cup");
    const plan = await planOf(mended, { existing, selection: { ...allRows, onlyFailed: true } });
    expect(plan.items.map(({ rowId, state, due }) => [rowId, state, due])).toEqual([
      ["cup-red", "failed", true],
      ["cup-blue", "new", true],
    ]);
  });

  test("does not take a row whose failure is past: it was mended and made", async () => {
    const old = states(await planOf(valid), "failed").slice(0, 1);
    const mended = valid.replace("a red cup", "a ruby cup");
    const now = states(await planOf(mended), "archived");
    const selection = { ...allRows, onlyFailed: true };
    const plan = await planOf(mended, { existing: [...old, ...now], selection });
    expect(plan.items).toEqual([]);
    expect(plan.problems).toEqual([]);
  });
});

describe("identical rows", () => {
  const twins = "id,model,prompt,repeat\na,paint,x,2\nb,paint,y,1\nc,paint,x,3\n";

  test("merged are made as often as the row that wants most, and each row stands for them", async () => {
    const plan = await planOf(twins, { duplicates: "merge" });
    expect(plan.items.map(({ rowId }) => rowId)).toEqual(["a", "a-2", "b", "c-3"]);
    const [a, b, c] = plan.sheet.rows;
    expect(c?.keys.slice(0, 2)).toEqual(a?.keys);
    expect([a?.keys.length, b?.keys.length, c?.keys.length]).toEqual([2, 1, 3]);
    expect(plan.warnings[0]?.message).toBe("rows 2, 4 are identical; they share the same items");
  });

  test("are told with a selection only if it makes several of them", async () => {
    const five = "id,model,prompt\na,paint,z\nb,paint,x\nc,paint,x\nd,paint,x\n";
    const cost = async (first: number, duplicates: "keep" | "merge" = "keep") =>
      (await planOf(five, { duplicates, selection: { ...allRows, first } })).warnings.map((each) =>
        each.kind === "identical_rows" ? [each.rows, each.copies] : [],
      );
    expect([await cost(1), await cost(2)]).toEqual([[], []]);
    expect(await cost(3)).toEqual([[[3, 4, 5], 1]]);
    expect(await cost(4)).toEqual([[[3, 4, 5], 2]]);
    expect(await cost(1, "merge")).toEqual([]);
    expect(await cost(2, "merge")).toHaveLength(1);
  });

  test("are problems where that is asked for, and only the first is made", async () => {
    const plan = await planOf(twins, { duplicates: "error" });
    expect(plan.problems).toMatchObject([
      { place: { row: 4, id: "c" }, message: "the row is identical to row 2" },
    ]);
    expect(plan.items.map(({ rowId }) => rowId)).toEqual(["a", "a-2", "b"]);
  });

  test("keep their own files when they change places: an occurrence stays with its row's id", async () => {
    const rows = ["a,paint,x", "b,paint,x", "c,paint,x"];
    const before = await planOf(["id,model,prompt", ...rows].join("\n"));
    const existing: Existing[] = before.items.map((item) => ({ ...item, state: "archived" }));
    const keys = (plan: WholePlan) => Object.fromEntries(plan.items.map(({ rowId, key }) => [rowId, key]));
    const after = await planOf(["id,model,prompt", ...rows.reverse()].join("\n"), { existing });
    expect(keys(after)).toEqual(keys(before));
    expect(after.renamed).toEqual([]);
  });
});

test("the order of submission is by priority, as in the sheet, or the cheapest first", async () => {
  const mixed =
    "id,model,prompt,image_url,priority\na,edit,x,https://a/b.png,9\nb,paint,y,,1\nc,paint,z,,5\n";
  const order = async (how: "priority" | "sheet" | "cheapest") =>
    (await planOf(mixed, { order: how })).items
      .toSorted((a, b) => a.order - b.order)
      .map(({ rowId }) => rowId);
  expect(await order("priority")).toEqual(["a", "c", "b"]);
  expect(await order("sheet")).toEqual(["a", "b", "c"]);
  expect(await order("cheapest")).toEqual(["b", "c", "a"]);
});

test("a row that shares another one's item wants it, also where that other one is not selected", async () => {
  const sheet = "id,model,prompt,set\na,paint,x,1\nb,paint,x,2\nc,paint,y,3\n";
  const selection = { ...allRows, filters: [{ key: "set", pattern: "2" }] };
  const made = await planOf(sheet, { duplicates: "merge", selection });
  expect(made.items.map(({ rowId }) => rowId)).toEqual(["a"]);
  expect(made.selection).toMatchObject({ rows: 1, of: 3 });
  expect([...made.sheet.rows].map(({ keys }) => keys)).toEqual([
    [made.items[0]?.key],
    [made.items[0]?.key],
    [made.unselected[0]],
  ]);
});

describe("a pattern of a filter", () => {
  const matches = (pattern: string, value: string) =>
    matcherOf({ ...allRows, ...filter(["name", pattern]) })({
      number: 2,
      values: new Map([["name", value]]),
    });

  test("is the whole value, with * for any text and ? for one character, whatever the capitals", () => {
    expect(matches("cup", "CUP")).toBe(true);
    expect(matches(" cup ", "cup")).toBe(true);
    expect([matches("cup", "cups"), matches("cup", "a cup")]).toEqual([false, false]);
    expect([matches("c*p", "cp"), matches("c*p", "c\np"), matches("c*p", "cpx")]).toEqual([
      true,
      true,
      false,
    ]);
    expect([matches("c?p", "c🍵p"), matches("c?p", "cp")]).toEqual([true, false]);
    expect(matches("cafe\u0301", "caf\u00e9")).toBe(true);
  });

  test("takes every other character as it is", () => {
    for (const character of "\\^$.|+()[]{}-/") {
      expect(matches(`a${character}b`, `a${character}b`)).toBe(true);
      expect(matches(`a${character}b`, "ab")).toBe(false);
    }
  });
});

test("rows are selected by range with both its ends", () => {
  const inRange = (number: number) =>
    matcherOf({ ...allRows, range: { from: 3, to: 5 } })({ number, values: new Map() });
  expect([2, 3, 5, 6].map(inRange)).toEqual([false, true, true, false]);
});

test("a selection is told in the words of its flags", () => {
  const all = {
    ...filter(["id", "a*"], ["set", "1"]),
    onlyFailed: true,
    range: { from: 2, to: 9 },
    sample: 5,
    seed: "x",
    first: 3,
  };
  expect(selectionText(all)).toBe(
    "--filter id=a* --filter set=1 --only-failed --range 2:9 --sample 5 --seed x --first 3",
  );
  expect(selectionText({ ...allRows, range: { from: 4, to: Number.POSITIVE_INFINITY } })).toBe("--range 4:");
  expect(selectionText(allRows)).toBe("");
});

test("whatever narrows a selection makes it less than allRows", () => {
  expect(isEverything({ ...allRows, seed: "x" })).toBe(true);
  const narrower: Partial<Selection>[] = [
    filter(["id", "a"]),
    { onlyFailed: true },
    { range: { from: 2, to: 3 } },
    { sample: 1 },
    { first: 1 },
  ];
  expect(narrower.map((change) => isEverything({ ...allRows, ...change }))).toEqual(Array(5).fill(false));
});

test("an item is selected by its cells, by what was made of them, and by what is known of it", async () => {
  const plan = await planOf(valid);
  const [item] = plan.items.map((one) => ({ ...one, state: "failed", name: "cups/Red " }));
  const found = selectableItem(item as unknown as Parameters<typeof selectableItem>[0], { Cost: "4" });
  expect(found).toMatchObject({ number: 2, name: "cup-red", failed: true });
  expect(Object.fromEntries(found.values)).toMatchObject({
    id: "cup-red",
    model: "paint",
    prompt: "a red cup",
    product: "Cup",
    "params.mood": "warm",
    priority: "0",
    output: "cups/Red",
    category: "image",
    state: "failed",
    cost: "4",
  });
  const selected = (change: Partial<Selection>) => select([found], { ...allRows, ...change }).length;
  expect([selected({ onlyFailed: true }), selected(filter(["STATE", "archived"]))]).toEqual([1, 0]);
  expect(select([{ ...found, failed: false }], { ...allRows, onlyFailed: true })).toEqual([]);
  const watch = new KeyWatch({
    ...allRows,
    ...filter(["Product", "x"], ["produkt", "x"], ["zzz", "x"]),
  });
  watch.see(found.values);
  expect(watch.unknown()).toEqual([
    { key: "produkt", near: "product" },
    { key: "zzz", near: undefined },
  ]);
});

test("a selection that leaves no row is told in words for one row and for several", async () => {
  const of = async (text: string) =>
    (await planOf(text, { selection: { ...allRows, ...filter(["id", "zzz"]) } })).problems;
  expect(await of("id,model,prompt\na,paint,x\n")).toMatchObject([
    { place: { row: null }, expected: "at least one of the 1 row", got: "none" },
  ]);
  const unknown = await planOf(valid, { selection: { ...allRows, ...filter(["zzz", "x"]) } });
  expect(unknown.problems).toEqual([
    {
      place: { file: expect.any(String), row: null },
      message: '--filter names "zzz", which no row has',
      expected: "a column of the sheet, params.KEY, id, model, prompt, category, output or priority",
      got: "zzz",
    },
  ]);
});

test("problems of rows that are not selected are counted", async () => {
  const wrong = "id,model,prompt\na,paint,x\nb,nobody,x\nc,nobody,x\n";
  const { notes } = await planOf(wrong, { selection: { ...allRows, first: 1 } });
  expect(notes).toContain("2 problems in rows that are not selected");
});

describe("a sample", () => {
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const lowest = (count: number, seed: string, of = names) => {
    const drawn = new Set(of.toSorted((a, b) => (lotOf(a, seed) < lotOf(b, seed) ? -1 : 1)).slice(0, count));
    return of.filter((name) => drawn.has(name));
  };

  test("is of the rows whose lots are the lowest, in their own order, among rows and among items", async () => {
    const text = `id,model,prompt\n${names.map((name) => `${name},paint,${name}`).join("\n")}\n`;
    const rows = names.map((name, index) => ({ name, number: index + 2, failed: false, values: new Map() }));
    for (const seed of ["", "x", "y"]) {
      expect(await selected({ sample: 3, seed }, text)).toEqual(lowest(3, seed));
      expect(select(rows, { ...allRows, sample: 3, seed }).map(({ name }) => name)).toEqual(lowest(3, seed));
      expect(select(rows.toReversed(), { ...allRows, sample: 3, seed })).toHaveLength(3);
    }
    expect(select(rows, { ...allRows, sample: 3, first: 2 })).toHaveLength(2);
    expect(select(rows, { ...allRows, first: 2 }).map(({ name }) => name)).toEqual(["a", "b"]);
    expect(new Set(["", "x", "y"].map((seed) => lowest(3, seed).join())).size).toBeGreaterThan(1);
  });

  test("of rows without ids goes by their numbers, and of equal names by the order of the sheet", async () => {
    const plan = await planOf(`model,prompt\n${names.map((name) => `paint,${name}`).join("\n")}\n`, {
      selection: { ...allRows, sample: 3, seed: "x" },
    });
    const numbers = names.map((_, index) => `${index + 2}`);
    expect(plan.items.map(({ rowNumber }) => `${rowNumber}`)).toEqual(lowest(3, "x", numbers));
    const same = [5, 3, 4].map((number) => ({ name: "a", number, failed: false, values: new Map() }));
    expect(select(same, { ...allRows, sample: 2 }).map(({ number }) => number)).toEqual([3, 4]);
  });

  test("draws by a lot that is the row's own with each seed", () => {
    expect(lotOf("a", "x")).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set([lotOf("a", "x"), lotOf("a", "y"), lotOf("b", "x"), lotOf("xa", "")]).size).toBe(4);
  });
});

test("an item that did not fail is none that failed", async () => {
  const [item] = (await planOf(valid)).items.map((one) => ({ ...one, state: "archived" }));
  expect(selectableItem(item as unknown as Parameters<typeof selectableItem>[0]).failed).toBe(false);
});
