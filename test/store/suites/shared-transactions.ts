import { beforeEach, expect, test } from "vitest";
import { defaultReconcile } from "../../../src/core/charges/readings.js";
import { credits } from "../../../src/core/money.js";
import { TaskTaken } from "../../../src/core/ports/attempt.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../item-fixture.js";
import type { OpenDatabase, OpenedDatabase } from "./open.js";

/** What comes at the same moment shares a transaction, in which the queries of different items may mix. */
export function sharedTransactionsSuite(open: OpenDatabase): void {
  const origin = runStart.origin;
  const saved = { file: "a.png", bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" } as const;
  let opened: OpenedDatabase;
  let store: Store;
  let runId: number;

  beforeEach(async () => {
    opened = await open(new ManualClock());
    store = opened.store;
    runId = (await store.startRun((await store.job("demo")).id, runStart)).id;
  });

  async function ids(): Promise<Record<string, number>> {
    return Object.fromEntries((await store.items(runId)).map(({ rowId, id }) => [rowId, id]));
  }

  const intend = (itemId: number) =>
    store.intend(itemId, { runId, sentAt: 0, bodySha256: "00", spendLogId: null });

  test("a child whose parents end at the same moment is released once", async () => {
    await store.enroll(runId, [
      newItem("p"),
      newItem("q"),
      newItem("r"),
      newItem("child", {
        inputs: { image_url: "@p", video_url: "@q", audio_url: "@r" },
        parents: [
          { field: "image_url", key: "k1:p", output: 1 },
          { field: "video_url", key: "k1:q", output: 1 },
          { field: "audio_url", key: "k1:r", output: 1 },
        ],
      }),
    ]);
    const { p = 0, q = 0, r = 0, child = 0 } = await ids();
    await Promise.all(
      [p, q, r].map(async (item) => {
        const attempt = await intend(item);
        await store.conclude(attempt.id, "accepted", { taskId: `t${item}`, charged: credits(4) });
      }),
    );
    await Promise.all(
      [p, q, r].map((item) =>
        store.complete(item, { urls: ["u"], fetchBy: 0, charged: null, createdAt: "c", completedAt: "d" }),
      ),
    );
    expect((await store.item(child)).state).toBe("planned");
    await store.wait(child);
    await Promise.all([p, q, r].map((item) => store.saved(item, 1, saved)));
    const events = await opened.ask(`SELECT event FROM events WHERE item_id = ${child} ORDER BY id`);
    expect(events).toEqual([{ event: "released" }, { event: "waits" }, { event: "released" }]);
    expect(await store.counts(runId)).toMatchObject({ archived: 3, planned: 1 });
  });

  test("a change that fails does so alone", async () => {
    await store.enroll(
      runId,
      ["a", "b", "c"].map((name) => newItem(name)),
    );
    const { a = 0, b = 0, c = 0 } = await ids();
    await intend(b);
    const outcomes = await Promise.allSettled([intend(a), intend(b), intend(c)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    for (const item of [a, b, c]) expect((await store.attempt(item))?.number).toBe(1);
    expect(await store.counts(runId)).toMatchObject({ submitting: 3 });
  });

  test("a task that is answered to two requests belongs to one of them", async () => {
    await store.enroll(runId, [newItem("a"), newItem("b")]);
    const { a = 0, b = 0 } = await ids();
    const attempts = [await intend(a), await intend(b)];
    const outcomes = await Promise.allSettled(
      attempts.map(({ id }) => store.conclude(id, "accepted", { taskId: "t", charged: credits(4) })),
    );
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused.map(({ reason }) => reason)).toEqual([expect.any(TaskTaken)]);
    expect(await store.counts(runId)).toMatchObject({ processing: 1, submitting: 1 });
  });

  test("P9: limits that come while nothing limited hold for all requests of that moment", async () => {
    const { accounts } = opened;
    const { id } = await accounts.accountOf(origin, "f1");
    const caller = { accountId: id, fingerprint: "f1" };
    await accounts.setLimits(id, { perMinute: null, perDay: null });
    const free = await Promise.all(Array.from({ length: 20 }, () => accounts.reserve(caller, "task")));
    expect(free.filter(({ ticket }) => ticket === null)).toEqual([]);
    await Promise.all(free.map(({ ticket }) => (ticket ? accounts.answered(ticket) : null)));
    await accounts.setLimits(id, { perMinute: 2, perDay: 100 });
    const counted = await Promise.all(Array.from({ length: 5 }, () => accounts.reserve(caller, "task")));
    expect(counted.filter(({ ticket }) => ticket !== null)).toHaveLength(2);
  });

  test("every change of the spend log has a position of its own", async () => {
    const { accounts } = opened;
    await accounts.accountOf(origin, "f1");
    const spendLog = accounts.spendLog({ origin, fingerprint: "f1", workspace: "here" });
    await spendLog.read({ used: credits(0), requests: 0, over: -1, servedAt: null });
    const keys = Array.from({ length: 150 }, (_, at) => `k1:${at}`);
    const bought = await Promise.all(
      keys.map((itemKey) => spendLog.intend({ itemKey, price: credits(1), at: 0 })),
    );
    await Promise.all(
      bought.map((entry) => spendLog.answered(entry, { outcome: "unknown", completeError: false })),
    );
    const { entries = [] } = (await spendLog.evidence(defaultReconcile)) ?? {};
    const positions = entries.flatMap(({ intendedSeq, endedSeq }) => [intendedSeq, endedSeq]);
    expect(positions).toHaveLength(2 * keys.length);
    expect(new Set(positions).size).toBe(positions.length);
  });
}
