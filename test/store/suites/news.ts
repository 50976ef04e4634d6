import { expect, test } from "vitest";
import type { FailureKind } from "../../../src/core/failure.js";
import { credits } from "../../../src/core/money.js";
import type { NewItem } from "../../../src/core/ports/store.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../item-fixture.js";
import type { OpenDatabase } from "./open.js";

/** A workspace with a run of these items, and what happens to them. */
async function begunIn(open: OpenDatabase, ids: readonly string[], change: Partial<NewItem> = {}) {
  const { store, newsOf } = await open(new ManualClock());
  const run = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(
    run.id,
    ids.map((id) => newItem(id, change)),
  );
  const items = new Map((await store.items(run.id)).map(({ rowId, id }) => [rowId, id]));
  const idOf = (rowId: string) => items.get(rowId) ?? 0;
  const submit = async (rowId: string) => {
    const intent = { runId: run.id, sentAt: 0, bodySha256: "00", spendLogId: null };
    const attempt = await store.intend(idOf(rowId), intent);
    await store.conclude(attempt.id, "accepted", {
      taskId: `t-${attempt.id}`,
      charged: credits(4),
      nextAt: 0,
    });
  };
  return {
    idOf,
    store,
    submit,
    news: await newsOf(run.id),
    again: () => newsOf(run.id),
    fail: async (rowId: string, failureKind: FailureKind, note: string) => {
      await submit(rowId);
      await store.apply(idOf(rowId), "task_failed", { failureKind, note });
    },
    retry: (rowId: string) => store.apply(idOf(rowId), "retry", {}),
    async archive(rowId: string) {
      await submit(rowId);
      const facts = { urls: ["u"], fetchBy: 0, charged: credits(4), createdAt: "c", completedAt: "d" };
      await store.complete(idOf(rowId), facts);
      const saved = { file: `${rowId}.png`, bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" };
      await store.saved(idOf(rowId), 1, saved);
    },
  };
}

const none = { items: 0, rowIds: [] };

export function newsSuite(open: OpenDatabase): void {
  const begun = (ids: readonly string[], change?: Partial<NewItem>) => begunIn(open, ids, change);

  test("the news name the newest file, and count items in trouble by reason as they come and go", async () => {
    const { news, again, fail, retry, archive } = await begun(["a", "b", "c", "d"]);
    expect(await news.read()).toEqual({ newestFile: null, trouble: [], awaiting: none });
    await fail("a", "moderation", "refused");
    await fail("b", "provider", "no capacity");
    await fail("c", "moderation", "refused");
    await archive("d");
    const told = {
      newestFile: "d.png",
      awaiting: none,
      trouble: [
        { state: "failed", kind: "moderation", note: "refused", items: 2, rowIds: ["a", "c"] },
        { state: "failed", kind: "provider", note: "no capacity", items: 1, rowIds: ["b"] },
      ],
    };
    expect(await news.read()).toEqual(told);
    expect(await news.read()).toEqual(told);
    // One that begins now finds the same.
    expect(await (await again()).read()).toEqual(told);
    await retry("b");
    await archive("b");
    expect(await news.read()).toEqual({ ...told, newestFile: "b.png", trouble: told.trouble.slice(0, 1) });
  });

  test("of many items with one reason the first few are named", async () => {
    const ids = Array.from({ length: 30 }, (_, number) => `row-${number}`);
    const { news, fail, retry } = await begun(ids);
    await news.read();
    for (const id of ids) await fail(id, "moderation", "refused");
    expect((await news.read()).trouble).toMatchObject([{ items: 30, rowIds: ids.slice(0, 5) }]);
    for (const id of ids.slice(0, 7)) await retry(id);
    expect((await news.read()).trouble).toMatchObject([{ items: 23, rowIds: ids.slice(7, 12) }]);
  });

  test("items that wait for a person's approval are named until it is given", async () => {
    const { store, news, archive, idOf } = await begun(["a", "b"], { approve: true });
    for (const rowId of ["a", "b"]) await archive(rowId);
    expect((await news.read()).awaiting).toEqual({ items: 2, rowIds: ["a", "b"] });
    await store.approve([idOf("a")], "rejected");
    expect((await news.read()).awaiting).toEqual({ items: 1, rowIds: ["b"] });
  });
}
