import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import type { Run } from "../../src/core/ports/store.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { spentIn } from "../../src/workspace/spent.js";
import { ManualClock } from "../manual-clock.js";
import { newItem, runStart } from "../store/item-fixture.js";

let store: Store;
let first: Run;
let item: number;

const facts = { urls: ["https://a/1"], fetchBy: 0, charged: credits(4), createdAt: "c", completedAt: "d" };
const saved = { file: "demo/a.png", bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" };

async function begun(): Promise<Run> {
  const run = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(run.id, [newItem("a"), newItem("b", { position: 2 })]);
  return run;
}

function intend(run: Run) {
  return store.intend(item, { runId: run.id, sentAt: 0, bodySha256: "", spendLogId: null });
}

/** What a run reports of lost requests, and its credits. */
async function told(run: Run) {
  const { lost, lostCredits, pending, spent } = await spentIn(store, run.id);
  return { lost: lost.map(({ rowId, reason }) => `${rowId}: ${reason}`), lostCredits, pending, spent };
}

/** The item that is paid again in this run, to its end. */
async function paidAgain(run: Run): Promise<void> {
  await store.conclude((await intend(run)).id, "accepted", { taskId: "t1", charged: credits(4) });
  await store.complete(item, facts);
  await store.saved(item, 1, saved);
}

beforeEach(async () => {
  const root = mkdtempSync(join(tmpdir(), "bulkgen-spent-"));
  store = openWorkspace({ stateFile: join(root, "state.db"), root }, new ManualClock());
  first = await begun();
  item = (await store.items(first.id))[0]?.id ?? 0;
  await store.conclude((await intend(first)).id, "unanswered", {});
});
afterEach(() => store.close());

const own = "a: its item was submitted again";
const others = "a: its item was submitted again; run 1 sent it and counts its credits";
const none = { lost: [], lostCredits: noCredits, pending: noCredits, spent: noCredits };

describe("a lost request of a cancelled run that proves charged in the next one", () => {
  let second: Run;
  beforeEach(async () => {
    await store.cancelRun(first.id, new Set());
    second = await begun();
    await store.giveVerdict(item, "charged", "the counter moved");
  });

  test("P6: is reported in the run that pays its item again, and counted once", async () => {
    expect(await told(second)).toEqual(none);
    expect(await told(first)).toEqual({ ...none, pending: credits(4) });
    await store.apply(item, "resubmit", { nextAt: 0 });
    expect(await told(second)).toEqual({ ...none, lost: [others] });
    await paidAgain(second);
    expect(await told(second)).toEqual({ ...none, lost: [others], spent: credits(4) });
    expect(await told(first)).toEqual({ ...none, lost: [own], lostCredits: credits(4) });
  });

  test("P6: is not told again in a later run, which only finds its item archived", async () => {
    await store.apply(item, "resubmit", { nextAt: 0 });
    await paidAgain(second);
    await store.setRun(second.id, { state: "finished" });
    const third = await begun();
    expect((await store.item(item)).runId).toBe(third.id);
    expect(await told(third)).toEqual(none);
  });
});

test("P6: a lost request that its own run pays again is reported and counted there", async () => {
  await store.giveVerdict(item, "charged", "the counter moved");
  await store.apply(item, "resubmit", { nextAt: 0 });
  await paidAgain(first);
  expect(await told(first)).toEqual({ lost: [own], lostCredits: credits(4), pending: 0, spent: credits(4) });
});
