import { beforeEach, expect, test } from "vitest";
import { credits } from "../../../src/core/money.js";
import type { Item, RunStart } from "../../../src/core/ports/store.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../item-fixture.js";
import type { OpenDatabase } from "./open.js";

export function usersSuite(open: OpenDatabase): void {
  let store: Store;
  let jobId: number;

  beforeEach(async () => {
    store = (await open(new ManualClock())).store;
    jobId = (await store.job("demo")).id;
  });

  const ofAda: RunStart = runStart;
  const ofBen: RunStart = { ...runStart, accountId: "user-2" };

  test.each([
    ["user", ofBen],
    ["service", { ...runStart, origin: "https://other.example" }],
  ])(
    "P2: a run goes on for its own account alone, and one of another %s is a run of its own",
    async (_, other) => {
      const ada = await store.startRun(jobId, ofAda);
      await store.setRun(ada.id, { state: "interrupted" });
      const ben = await store.startRun(jobId, other);
      expect(ben).toMatchObject({ id: ada.id + 1, accountId: other.accountId, origin: other.origin });
      expect(await store.run(ada.id)).toMatchObject({ state: "interrupted", accountId: "user-1" });
      expect((await store.startRun(jobId, ofAda)).id).toBe(ada.id);
    },
  );

  test("P2: what a run has open is left to it when another account's run takes its rows, until its own user's does", async () => {
    const ada = await store.startRun(jobId, ofAda);
    const rows = ["waiting", "sent", "lost", "held", "failed"].map((id) => newItem(id));
    await store.enroll(ada.id, rows);
    await brought(ada.id, "sent", "accepted");
    await brought(ada.id, "lost", "unanswered");
    const held = await brought(ada.id, "held", "unanswered");
    await store.apply(held.id, "undecided", {});
    await brought(ada.id, "failed", "rejected");
    const states = async (runId: number) =>
      Object.fromEntries((await store.items(runId)).map(({ rowId, state }) => [rowId, state]));
    const open = { waiting: "planned", sent: "processing", lost: "unknown", held: "held" };

    await store.setRun(ada.id, { state: "interrupted" });
    const ben = await store.startRun(jobId, ofBen);
    await store.enroll(ben.id, [newItem("ben's")]);
    expect(await states(ada.id)).toEqual(open);
    expect(await states(ben.id)).toEqual({ "ben's": "planned" });

    await store.setRun(ada.id, { state: "cancelled" });
    const next = await store.startRun(jobId, ofAda);
    await store.enroll(next.id, rows);
    expect(await states(next.id)).toEqual({ ...open, failed: "failed" });
    expect(await states(ben.id)).toEqual({ "ben's": "planned" });
  });

  async function brought(
    runId: number,
    id: string,
    event: "accepted" | "unanswered" | "rejected",
  ): Promise<Item> {
    const item = (await store.items(runId)).find(({ rowId }) => rowId === id) as Item;
    const attempt = await store.intend(item.id, { runId, sentAt: 0, bodySha256: "00", spendLogId: null });
    const outcome = event === "accepted" ? { taskId: `task-${id}`, charged: credits(4), nextAt: 0 } : {};
    await store.conclude(attempt.id, event, outcome);
    return store.item(item.id);
  }
}
