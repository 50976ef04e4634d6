import { expect, test } from "vitest";
import { credits, noCredits, plus } from "../../../src/core/money.js";
import type { DraftItem, DraftRow, ItemKind } from "../../../src/core/ports/draft.js";
import { openDraft } from "../../../src/store/draft/draft.js";

const kinds: ItemKind[] = [
  { model: "paint", category: "image", params: {}, price: credits(4), group: 0 },
  { model: "paint", category: "image", params: { mood: "calm" }, price: credits(5), group: 0 },
  { model: "animate", category: "video", params: {}, price: credits(20), group: 1 },
];

const row: DraftRow = {
  number: 2,
  id: null,
  repeat: 1,
  cells: {},
  problem: null,
  without: [],
  chosen: true,
  lot: null,
  shares: null,
  step: null,
};

function item(index: number): DraftItem {
  return {
    key: `k1:${index}`,
    copy: 1,
    occurrence: 1,
    head: null,
    approve: false,
    priority: 0,
    rowId: `r${index}`,
    name: "n",
    kind: kinds[(index + 2) % 3] as ItemKind,
    prompt: "x",
    inputs: {},
    contents: {},
  };
}

function drafted() {
  const draft = openDraft();
  for (let index = 0; index < 10; index++)
    draft.add({ ...row, number: index + 2 }, [item(2 * index), item(2 * index + 1)]);
  draft.add({ ...row, number: 12, problem: "the row names no model" }, []);
  return draft;
}

test("items come to the same whether they are counted as they go in or afterwards", () => {
  const draft = drafted();
  const asTheyWentIn = draft.totals();
  expect(asTheyWentIn).toMatchObject({ items: 20, due: 20, states: { new: 20 } });
  expect(asTheyWentIn.groups.map(({ group, items, price }) => [group, items, price])).toEqual([
    [1, 7, credits(20)],
    [0, 13, credits(5)],
  ]);
  draft.choose({ onlyFailed: false, sample: null, first: null, matches: () => true });
  expect(draft.totals()).toEqual(asTheyWentIn);
  draft.choose({ onlyFailed: false, sample: null, first: 2, matches: () => true });
  expect(draft.totals()).toMatchObject({ items: 4, due: 4 });
  draft.close();
});

test("what a job has already is not due again", () => {
  const draft = drafted();
  const known = { state: "archived", rowId: "r0", model: "animate", prompt: "x", params: {}, inputs: {} };
  draft.know([{ ...known, key: "k1:0", name: "n", attempted: true, vanished: false } as never], new Set());
  draft.stand({ failed: false, missing: false });
  expect(draft.totals()).toMatchObject({ items: 20, due: 19, states: { new: 19, archived: 1 } });
  draft.close();
});

test("what is at the service without an answer is in doubt, with its price", () => {
  const draft = drafted();
  const known = { model: "animate", prompt: "x", params: {}, inputs: {}, name: "n", attempted: true };
  const states = ["submitting", "unknown", "processing", "held"];
  draft.know(
    states.map(
      (state, at) => ({ ...known, state, key: `k1:${at}`, rowId: `r${at}`, vanished: false }) as never,
    ),
    new Set(),
  );
  draft.stand({ failed: false, missing: false });
  const [first, second] = [...draft.items("", null, 2)];
  expect(draft.totals().inDoubt).toBe(plus(first?.price ?? noCredits, second?.price ?? noCredits));
  expect(draft.totals().inDoubt).toBeGreaterThan(0);
  draft.close();
});

test("a draft that is cleared holds nothing, and takes the same items again", () => {
  const draft = drafted();
  draft.choose({ onlyFailed: false, sample: null, first: 1, matches: () => true });
  draft.clear();
  expect(draft.totals()).toEqual({ items: 0, due: 0, groups: [], states: {}, inDoubt: 0 });
  draft.add(row, [item(0)]);
  expect(draft.totals()).toMatchObject({ items: 1, due: 1, groups: [{ group: 1, credits: credits(20) }] });
  expect([...draft.items("", null, 1)]).toMatchObject([{ rowId: "r0", model: "animate", name: "n" }]);
  draft.close();
});

test("problems are listed in the order of the sheet, in whatever order they were found", () => {
  const draft = openDraft();
  const tell = (at: number | null, message: string) =>
    draft.problem({ place: { file: "a.csv", row: at }, message, expected: "x", got: "y" });
  const told = () => [...draft.problems()].map(({ message }) => message);
  tell(2, "a");
  tell(2, "b");
  tell(5, "c");
  expect(told()).toEqual(["a", "b", "c"]);
  tell(3, "d");
  tell(7, "e");
  tell(null, "f");
  expect(told()).toEqual(["f", "a", "b", "d", "c", "e"]);
  draft.clear();
  expect(told()).toEqual([]);
  draft.close();
});
