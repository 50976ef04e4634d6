import { expect, test } from "vitest";
import { credits } from "../../../src/core/money.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../item-fixture.js";
import type { OpenDatabase } from "./open.js";

export function stepsSuite(open: OpenDatabase): void {
  test("a step is reported with its own attempt, also if the item was submitted again since", async () => {
    const clock = new ManualClock();
    const { store, openSteps } = await open(clock);
    const steps = await openSteps();
    const run = await store.startRun((await store.job("demo")).id, runStart);
    await store.enroll(run.id, [newItem("a"), newItem("b")]);
    const [item] = await store.items(run.id);
    if (!item) throw new Error("no item");
    const submit = async (taskId: string) => {
      const attempt = await store.intend(item.id, {
        runId: run.id,
        sentAt: 0,
        bodySha256: "00",
        spendLogId: null,
      });
      await store.conclude(attempt.id, "accepted", { taskId, charged: credits(4), nextAt: 0 });
    };
    await submit("t-1");
    const seen = await steps.newest();
    await store.apply(item.id, "task_failed", { note: "no capacity", failureKind: "provider" });
    clock.advance(1_000);
    await store.apply(item.id, "retry", {});
    await submit("t-2");
    await store.complete(item.id, {
      urls: ["u"],
      fetchBy: 0,
      charged: credits(4),
      createdAt: "c",
      completedAt: "d",
    });
    await store.saved(item.id, 1, {
      file: "a.png",
      bytes: 3,
      sha256: "ab",
      mime: "image/png",
      check: "decoded",
    });

    const told = await steps.after(run.id, seen);
    expect(told.map(({ event, attempt, taskId }) => [event, attempt, taskId])).toEqual([
      ["task_failed", 1, "t-1"],
      ["retry", 1, "t-1"],
      ["intended", 2, "t-2"],
      ["accepted", 2, "t-2"],
      ["completed", 2, "t-2"],
      ["saved", 2, "t-2"],
    ]);
    expect(told.at(-1)).toMatchObject({ rowId: "a", charged: credits(4), files: ["a.png"] });
    expect((told[1]?.at ?? 0) - (told[0]?.at ?? 0)).toBe(1_000);
    expect(await steps.after(run.id, await steps.newest())).toEqual([]);
    expect(await steps.after(run.id + 1, 0)).toEqual([]);
  });
}
