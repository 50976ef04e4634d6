import { describe, expect, test } from "vitest";
import { variantKey } from "../../../src/core/identity.js";
import type { NewItem, SheetRow } from "../../../src/core/ports/store.js";
import { allRows } from "../../../src/plan/plan.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { openWorkspace } from "../../../src/store/workspace/workspace.js";
import { exportFrom } from "../../../src/upkeep/archive/export.js";
import { filledSheet } from "../../../src/upkeep/archive/filled-sheet.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../../store/item-fixture.js";

const whole = {
  run: undefined,
  selection: allRows,
  failed: false,
  picked: false,
  final: false,
  reviewed: null,
  measured: false,
  cwd: "/",
};

/** A run with a sheet, and how many rows and items were read from its store at a time. */
async function ran(items: readonly NewItem[], rows: readonly SheetRow[] | null) {
  const store = openWorkspace({ stateFile: ":memory:", root: "/somewhere" }, new ManualClock());
  const run = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(run.id, items);
  if (rows) await store.keepSheet(run.id, { columns: ["id"], rows });
  const pages: number[] = [];
  const counted = {
    ...store,
    made: async (...asked) => {
      const made = await store.made(...asked);
      pages.push(made.length);
      return made;
    },
    async *history(job) {
      for await (const page of store.history(job)) {
        pages.push(page.length);
        yield page;
      }
    },
    itemsOf: () => Promise.reject(new Error("all items were asked for")),
    items: () => Promise.reject(new Error("all items were asked for")),
    files: () => Promise.reject(new Error("all files were asked for")),
  } satisfies Store;
  return { store: counted, pages };
}

const ids = Array.from({ length: 2_500 }, (_, at) => `r${at}`);
const items = ids.map((id, position) => newItem(id, { position }));
const rowOf = (id: string, keys = [`k1:${id}`]): SheetRow => ({
  number: 2,
  cells: { id },
  keys,
  problem: null,
});

/** The sheet of everything that an export has. */
function sheetIn({ columns, lines }: Awaited<ReturnType<typeof exportFrom>>) {
  return filledSheet(columns, lines);
}

async function itemsIn(made: Awaited<ReturnType<typeof exportFrom>>): Promise<unknown[]> {
  const sheet = sheetIn(made);
  const at = sheet.columns.indexOf("item");
  const found: unknown[] = [];
  for await (const line of sheet.lines) found.push(line[at]);
  return found;
}

describe("an export of a large sheet", () => {
  test.each([
    ["with its rows", ids.map((id) => rowOf(id))],
    [
      "of one row that stands for all items",
      [
        rowOf(
          "all",
          items.map(({ key }) => key),
        ),
      ],
    ],
    ["that was not kept", null],
  ])("%s reads the items of a thousand at a time", async (_, rows) => {
    const { store, pages } = await ran(items, rows);
    expect(await itemsIn(await exportFrom(store, whole))).toEqual(ids);
    expect(Math.max(...pages)).toBeLessThanOrEqual(1_000);
  });

  test("reads a page when its lines are needed, and none for those after it", async () => {
    const { store, pages } = await ran(
      items,
      ids.map((id) => rowOf(id)),
    );
    const sheet = sheetIn(await exportFrom(store, whole));
    expect(pages).toEqual([]);
    for await (const line of sheet.lines) if (line.includes("r0")) break;
    expect(pages).toEqual([1_000]);
  });

  test.each([
    ["--filter", { filters: [{ key: "id", pattern: "r24*" }] }, 111],
    ["--sample", { sample: 7 }, 7],
    ["--first", { first: 1_200 }, 1_200],
  ])("%s chooses among all rows without holding them", async (_, selection, count) => {
    const { store, pages } = await ran(
      items,
      ids.map((id) => rowOf(id)),
    );
    const found = await itemsIn(
      await exportFrom(store, { ...whole, selection: { ...allRows, ...selection } }),
    );
    expect(found).toHaveLength(count);
    expect(found).toEqual(ids.filter((id) => found.includes(id)));
    expect(Math.max(...pages)).toBeLessThanOrEqual(1_000);
  });

  test("has variants beside their items, and rows without an item, wherever a page ends", async () => {
    const variant = (id: string, number: number) =>
      newItem(`${id}-v${number}`, { key: variantKey(`k1:${id}`, number), variant: number });
    const { store } = await ran(
      [...items, variant("r999", 2), variant("r1000", 3)],
      [
        ...ids.slice(0, 1_000).map((id) => rowOf(id)),
        rowOf("nothing", ["k1:never made"]),
        { ...rowOf("wrong", []), problem: "the row has too few cells" },
        rowOf("two", ["k1:r1000", "k1:never made", "k1:r1001"]),
      ],
    );
    const sheet = sheetIn(await exportFrom(store, whole));
    const lines: unknown[] = [];
    for await (const [id, item, , , , state, reason] of sheet.lines) lines.push([id, item, state, reason]);
    expect(lines).toHaveLength(1_006);
    expect(lines.slice(999)).toEqual([
      ["r999", "r999", "planned", null],
      ["r999", "r999-v2", "planned", null],
      ["nothing", null, "not made", null],
      ["wrong", null, "not made", "the row has too few cells"],
      ["two", "r1000", "planned", null],
      ["two", "r1000-v3", "planned", null],
      ["two", "r1001", "planned", null],
    ]);
  });
});
