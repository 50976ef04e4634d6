import { afterEach, beforeEach, expect, test } from "vitest";
import { variantKey } from "../../../src/core/identity.js";
import { credits } from "../../../src/core/money.js";
import type { Item, NewItem, Run } from "../../../src/core/ports/store.js";
import { checkedOrder } from "../../../src/job/orders/apply.js";
import { decideItems } from "../../../src/job/orders/decide.js";
import type { Facts } from "../../../src/job/orders/facts.js";
import { itemNamed } from "../../../src/job/orders/item-named.js";
import { redoItems, variantsOf } from "../../../src/job/orders/redo.js";
import { resolveHeld } from "../../../src/job/orders/resolve.js";
import { allRows } from "../../../src/plan/plan.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { openWorkspace } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../../store/item-fixture.js";

let store: Store;
let made: number;
let held: number;

beforeEach(async () => {
  store = openWorkspace({ stateFile: ":memory:", root: "/somewhere" }, new ManualClock());
  const { id: runId } = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(runId, [newItem("made", { approve: true }), newItem("held")]);
  [made, held] = (await store.items(runId)).map(({ id }) => id) as [number, number];
  const begin = (item: number) =>
    store.intend(item, { runId, sentAt: 0, bodySha256: "00", spendLogId: null });
  await store.conclude((await begin(held)).id, "unanswered", {});
  await store.giveVerdict(held, "undecided", "no evidence");
  await store.conclude((await begin(made)).id, "accepted", { taskId: "task-1" });
  const facts = { urls: ["https://a/1"], fetchBy: 0, charged: credits(4), createdAt: "c", completedAt: "d" };
  await store.complete(made, facts);
  await store.saved(made, 1, {
    file: "made.png",
    bytes: 3,
    sha256: "ab",
    mime: "image/png",
    check: "decoded",
  });
});

afterEach(() => store.close());

test("P2: an item that is named twice is redone once, and its price asked for once", async () => {
  const asked = { selection: allRows, cwd: "/somewhere/outputs/demo", change: null, maxPrice: null };
  const { order, offered } = await redoItems({ names: ["made", "made.png"], ...asked })(store);
  expect(order).toEqual({ do: "redo", items: [made], agreed: credits(4) });
  expect(offered).toHaveLength(1);
});

test("a name that no item has is compared with names alone: a run may have more items than memory holds", async () => {
  const counted = {
    ...store,
    items: () => Promise.reject(new Error("all items were asked for")),
  } satisfies Store;
  await expect(itemNamed(counted, "hel", "/")).rejects.toThrow('; did you mean "held"?');
  await expect(itemNamed(counted, "nothing like it", "/")).rejects.toThrow(/of one run$/);
});

test.each(["resubmit", "skip"] as const)("a held item that is named twice is one item to %s", async (way) => {
  const which = { names: ["held", "held"], all: false, selection: allRows, cwd: "/" };
  const { order } = await resolveHeld(which, way)(store);
  expect(order).toMatchObject({ do: way, items: [held] });
});

test("an item that is named twice is decided about once", async () => {
  const which = { names: ["made", "task-1"], all: false, selection: allRows, cwd: "/" };
  expect((await decideItems(which, "again")(store)).order).toMatchObject({ items: [made] });
  expect((await decideItems(which, "approve")(store)).order).toMatchObject({ items: [made] });
});

test("a redo of a variant is numbered after those of its row, whatever the row is called now", async () => {
  const run = (await store.runs())[0] as Run;
  const item = await store.item(made);
  const [second] = await variantsOf(store, run, [item]);
  await store.add(run.id, [second as NewItem]);
  await store.add(run.id, [{ ...item, rowId: "renamed", name: "renamed" }]);
  const [variant] = await store.find("renamed-v2");
  const [third, fourth] = await variantsOf(store, run, [variant as Item, await store.item(made)]);
  expect([third, fourth]).toMatchObject([
    { variant: 3, rowId: "renamed-v3", key: variantKey(item.key, 3) },
    { variant: 4, rowId: "renamed-v4", key: variantKey(item.key, 4) },
  ]);
});

test("P6: to submit an item again whose outputs cannot be had is to pay a second time, and said so", async () => {
  await store.lost(made, 1);
  await store.apply(made, "unfetchable", { note: "gone" });
  const which = { names: ["made"], all: false, selection: allRows, cwd: "/" };
  const { note } = await resolveHeld(which, "resubmit")(store);
  expect(note).toContain("1 of 1 item was charged before (4 credits)");
});

test.each([
  ["made.png", "s3://team/demo/demo/made.png"],
  ["demo/made.png", "s3://team/demo/demo/made.png"],
  ["sets/demo/made.png", "s3://team/demo/sets/demo/made.png"],
])(
  "a file %s in a bucket is found by its address, however often the job's name is in it",
  async (file, address) => {
    await store.moved(made, 1, file);
    expect(await itemNamed(store, address, "/")).toMatchObject({ id: made });
  },
);

test("a redo of many items names the first of them and counts the others", async () => {
  const run = (await store.runs())[0] as Run;
  const items = Array.from({ length: 8 }, (_, at) => newItem(`more-${at + 1}`, { position: at + 3 }));
  await store.add(run.id, items);
  const ids = (await store.items(run.id, ["planned"])).map(({ id }) => id);
  const model = {
    model_key: "picture",
    model_name: "",
    category: "image",
    credits_cost: 4,
    input_type: "text",
  };
  const facts = { models: { models: [{ ...model, parameters: [] }] } } as unknown as Facts;
  const work = { store, spendLog: null, facts, charges: new Map() };
  const order = { do: "redo", items: ids, agreed: credits(32) } as const;
  const { done } = await store.together(await checkedOrder(work, run, order));
  expect(done).toMatch(/^(more-\d-v2, ){4}more-\d-v2 and 3 more are planned$/);
});
