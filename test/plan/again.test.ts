import { describe, expect, test } from "vitest";
import { credits } from "../../src/core/money.js";
import type { Existing } from "../../src/plan/plan.js";
import { contentOf, kept, planOf } from "./account.js";

const sheet = "id,model,prompt\na,paint,x\nb,paint,y\nc,paint,z\n";

test("what is archived, on its way, failed or held is not paid again; what is new or planned is", async () => {
  const before = await planOf(sheet);
  for (const state of [
    "archived",
    "submitting",
    "processing",
    "overdue",
    "ready",
    "failed",
    "held",
    "unknown",
  ] as const) {
    const plan = await planOf(sheet, { existing: kept(before, state) });
    expect([state, plan.items.filter(({ due }) => due).length, plan.money.needed]).toEqual([
      state,
      0,
      credits(0),
    ]);
  }
  const plan = await planOf(sheet, { existing: kept(before, "planned", "archived", "archived").slice(0, 2) });
  expect(plan.items.map(({ state, due }) => [state, due])).toEqual([
    ["planned", true],
    ["archived", false],
    ["new", true],
  ]);
  expect(plan.states).toEqual({ planned: 1, archived: 1, new: 1 });
  expect(plan.money.needed).toBe(credits(8));
});

test("a dropped item comes back with its row, unless it was submitted once", async () => {
  const existing = kept(await planOf(sheet), "dropped").map((item, index) => ({
    ...item,
    attempted: index === 0,
  }));
  expect((await planOf(sheet, { existing })).items.map(({ due }) => due)).toEqual([false, true, true]);
});

test("an unchanged manifest shows no change", async () => {
  const plan = await planOf(sheet, { existing: kept(await planOf(sheet), "archived") });
  expect([plan.changed, plan.vanished, plan.renamed, plan.restored]).toEqual([[], [], [], []]);
});

test("a sheet of only some rows of a job has nothing to say about the others", async () => {
  const existing = kept(await planOf(sheet), "archived");
  const rows = "id,model,prompt\na,paint,x\n";
  expect((await planOf(rows, { existing })).vanished).toHaveLength(2);
  expect((await planOf(`# job: sheet\n${rows}`, { existing })).vanished).toEqual([]);
});

describe("an edited manifest", () => {
  test("names the files that it wants by other names, and those whose rows are back", async () => {
    const [a, b, c] = kept(await planOf(sheet), "archived") as [Existing, Existing, Existing];
    const { name: _, ...unnamed } = c;
    const plan = await planOf("id,model,prompt,output\na,paint,x,cup\nb,paint,y,\nc,paint,z,jug\n", {
      existing: [a, { ...b, vanished: true }, unnamed],
    });
    expect(plan.renamed).toEqual([{ rowNumber: 2, rowId: "a", from: "a", to: "cup" }]);
    expect(plan.restored).toEqual([{ rowNumber: 3, rowId: "b", key: b.key }]);
  });

  test("names the changed rows with their fields, old and new", async () => {
    const before = await planOf("id,model,prompt,params.aspect_ratio\na,paint,x,1:1\nb,paint,y,\n");
    const plan = await planOf("id,model,prompt,params.aspect_ratio\na,paint,new,16:9\nb,paint,y,\n", {
      existing: kept(before, "archived"),
    });
    expect(plan.changed).toEqual([
      {
        rowNumber: 2,
        rowId: "a",
        key: plan.items[0]?.key,
        oldKey: before.items[0]?.key,
        fields: [
          { field: "prompt", from: "x", to: "new" },
          { field: "params.aspect_ratio", from: "1:1", to: "16:9" },
        ],
      },
    ]);
    expect(plan.vanished).toMatchObject([{ rowId: "a", replacedBy: plan.items[0]?.key }]);
  });

  test("names a file that has other content under its old name", async () => {
    const text = "id,model,image_url\na,animate,cup.png\n";
    const withContent = (sha256: string) => ({ localInputs: contentOf({ "cup.png": sha256 }) });
    const existing = kept(await planOf(text, withContent("sha256:aa")), "archived");
    const { changed } = await planOf(text, { ...withContent("sha256:bb"), existing });
    expect(changed).toMatchObject([
      { fields: [{ field: "image_url", to: "the current file content", file: "cup.png" }] },
    ]);
  });

  test("names the items that no row asks for any more, but none that were dropped already", async () => {
    const before = await planOf(sheet);
    const existing = kept(before, "archived", "planned", "dropped");
    const plan = await planOf("id,model,prompt\nd,paint,new\n", { existing });
    expect(plan.vanished).toEqual([
      { key: before.items[0]?.key, rowId: "a", state: "archived", replacedBy: null, hasRow: false },
      { key: before.items[1]?.key, rowId: "b", state: "planned", replacedBy: null, hasRow: false },
    ]);
  });

  test("names them once: what was gone at the last run already has not changed", async () => {
    const existing = kept(await planOf(sheet), "archived").map((item) => ({ ...item, vanished: true }));
    expect((await planOf("id,model,prompt\na,paint,new\n", { existing })).vanished).toEqual([]);
  });

  test("does not call an item vanished whose row only has a mistake now", async () => {
    const existing = kept(await planOf("id,model,prompt,repeat\na,paint,x,2\nb,paint,y,1\n"), "archived");
    const plan = await planOf("id,model,prompt,repeat\na,pant,x,2\nb,paint\n", { existing });
    expect(plan.problems).toHaveLength(2);
    expect(plan.vanished).toEqual([]);
  });

  test("with its old text back finds the old item, and pays nothing", async () => {
    const first = await planOf(sheet);
    const second = await planOf(sheet.replace("x", "other"), { existing: kept(first, "archived") });
    const existing = [...kept(first, "archived"), ...kept(second, "archived").slice(0, 1)];
    const plan = await planOf(sheet, { existing });
    expect(plan.money.needed).toBe(0);
    expect(plan.changed).toEqual([]);
  });
});

test("another edition pays again, and does not list what the first one has", async () => {
  const existing = kept(await planOf(sheet), "archived");
  const plan = await planOf(sheet, { existing, edition: "2026-11-20" });
  expect(plan.states).toEqual({ new: 3 });
  expect([plan.changed, plan.vanished]).toEqual([[], []]);
});
