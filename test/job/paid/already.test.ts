import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Verdict } from "../../../src/core/charges/readings.js";
import { credits, noCredits } from "../../../src/core/money.js";
import type { PlannedItem, PlannedState } from "../../../src/core/ports/draft.js";
import type { LoggedAnswer } from "../../../src/core/ports/spend-log.js";
import { dayMs } from "../../../src/core/quota/quota.js";
import { paidAlready } from "../../../src/job/paid/already.js";
import type { EditionChoice } from "../../../src/job/paid/job-of.js";
import { PlannedKeys } from "../../../src/job/paid/planned-keys.js";
import { type Accounts, openAccounts } from "../../../src/store/accounts/accounts.js";
import type { SpendLog } from "../../../src/store/accounts/spend-log.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { openWorkspace } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../../store/item-fixture.js";
import { judgementOf } from "../../store/judgement-fixture.js";

const workspace = { root: "/jobs", stateFile: "/jobs/.bulkgen/state.db", outFolder: "/jobs/outputs" };
const owner = { origin: "https://s.example", fingerprint: "f1", workspace: workspace.stateFile };
const open: LoggedAnswer = { outcome: "accepted", charged: credits(4), taskId: "task-a" };
const lost: LoggedAnswer = { outcome: "unknown", completeError: false };

let clock: ManualClock;
let accounts: Accounts;
let store: Store;
beforeEach(async () => {
  clock = new ManualClock();
  accounts = openAccounts(":memory:", clock);
  await accounts.accountOf(owner.origin, owner.fingerprint);
  store = openWorkspace({ stateFile: ":memory:", root: workspace.root }, clock);
});
afterEach(async () => {
  await accounts.close();
  await store.close();
});

/** A paid request for item `a`, sent now. */
async function paid(
  answer: LoggedAnswer | null,
  spendLog: SpendLog = accounts.spendLog(owner),
): Promise<number> {
  const entry = await spendLog.intend({ itemKey: "k1:a", price: credits(4), at: clock.now() });
  if (answer) await spendLog.answered(entry, answer);
  return entry;
}

async function judged(verdict: Verdict): Promise<void> {
  const spendLog = accounts.spendLog(owner);
  const verdicts = [{ entry: await paid(lost), verdict, evidence: "", seq: null }];
  expect(await spendLog.keep(judgementOf(verdicts), await spendLog.seq())).toBe(true);
}

/** A run is on record that has item `a`; returns the item's number. */
async function used(): Promise<number> {
  const run = await store.startRun((await store.job("demo")).id, runStart);
  await store.add(run.id, [newItem("a")]);
  return (await store.items(run.id))[0]?.id ?? 0;
}

interface Change {
  state?: PlannedState;
  due?: boolean;
  edition?: EditionChoice;
  sandbox?: boolean;
  store?: null;
}

/** What stands in the way of a plan of two items, of which `a` has this state. */
async function found({ state = "new", due = true, ...change }: Change = {}): Promise<string | null> {
  const planned = (id: string, item: Partial<PlannedItem>): PlannedItem => ({
    ...newItem(id),
    state: "new",
    due: true,
    order: 0,
    fits: true,
    ...item,
  });
  const items = [planned("a", { state, due }), planned("b", {})];
  const { edition = "first", sandbox = false, store: known = store } = change;
  const plan = {
    job: "demo",
    edition: "",
    due: items.filter((item) => item.due).length,
    items: { length: 2, [Symbol.iterator]: () => items.values() },
    states: { new: state === "new" ? 2 : 1 },
    otherParams: {},
  };
  const who = { user: "u", origin: owner.origin };
  const draft = { holds: (key: string) => items.some((item) => item.key === key) };
  const { blockers } = await paidAlready(
    plan,
    {
      who,
      workspace,
      clock,
      store: known,
      runs: (await known?.runs()) ?? [],
      unfinished: undefined,
      agreed: false,
      guessed: null,
      account: { spendLog: accounts.spendLog(owner) },
      keys: new PlannedKeys(plan, draft, who, []),
    },
    { edition, sandbox },
  );
  return blockers.find(({ kind }) => kind === "paid_before")?.message ?? null;
}

describe("P2: a paid request that only the account's spend log remembers", () => {
  test("stands in the way while its task is open, with what is known of it and the ways out", async () => {
    await paid(open);
    expect(await found()).toBe(
      "1 of 2 items was sent from /jobs before (the newest on 2026-01-01), which may have been charged and whose outcome is unknown: a (task-a). The workspace's history does not know them, and they would be paid again, for 4 credits: restore /jobs/.bulkgen and run `bulkgen resume` to continue them; --fresh or another --edition makes them again.",
    );
    expect(await found({ store: null })).toContain("1 of 2 items was sent");
  });

  test.each<[string, () => Promise<unknown>]>([
    ["has no answer on record", () => paid(null)],
    ["was not answered", () => paid(lost)],
    ["was charged and lost", () => judged("charged")],
    ["was perhaps charged", () => judged("undecided")],
    ["was sent with another key", () => paid(open, accounts.spendLog({ ...owner, fingerprint: "f2" }))],
  ])("stands in the way where it %s", async (_, make) => {
    await accounts.accountOf(owner.origin, "f2");
    await make();
    expect(await found()).toContain("1 of 2 items was sent");
  });

  test.each<[string, () => Promise<unknown>]>([
    ["was not charged", () => judged("not_charged")],
    ["was refused", () => paid({ outcome: "free" })],
    [
      "led to a task that has ended",
      async () => {
        const entry = await paid(open);
        await accounts
          .spendLog(owner)
          .polled(entry, { task: "completed", charged: credits(4), endedAt: null });
        const failed = await paid(open);
        await accounts.spendLog(owner).polled(failed, { task: "failed", charged: noCredits, endedAt: null });
      },
    ],
    [
      "is of another folder",
      () => paid(open, accounts.spendLog({ ...owner, workspace: "/other/.bulkgen/state.db" })),
    ],
    ["is of another service", () => paid(open, accounts.spendLog({ ...owner, origin: "https://t.example" }))],
    [
      "is known to the history",
      async () => {
        const item = await used();
        const spendLogId = await paid(open);
        await store.intend(item, { runId: 1, sentAt: clock.now(), bodySha256: "", spendLogId });
      },
    ],
    [
      "never left, as its run has it on record that nothing was sent",
      async () => {
        await used();
        await paid(null);
      },
    ],
  ])("stands in no way where it %s", async (_, make) => {
    await accounts.accountOf("https://t.example", owner.fingerprint);
    await make();
    expect(await found()).toBeNull();
  });

  test("stands in the way of a history that was rebuilt without it", async () => {
    await used();
    await paid(open);
    expect(await found()).toContain("1 of 2 items was sent");
  });

  test("stands in the way without an answer, if the history began after it was sent", async () => {
    await paid(null);
    clock.advance(1);
    await used();
    expect(await found()).toContain("1 of 2 items was sent");
  });

  test("blocks nothing else: items that are not new, not selected, to be made again, or rehearsed", async () => {
    await paid(open);
    expect(await found({ state: "planned" })).toBeNull();
    expect(await found({ due: false })).toBeNull();
    expect(await found({ edition: "fresh" })).toBeNull();
    expect(await found({ sandbox: true })).toBeNull();
  });

  test("is forgotten after two weeks, whatever the clock was when it was sent", async () => {
    await paid(open);
    clock.advance(14 * dayMs);
    expect(await found()).not.toBeNull();
    clock.advance(1);
    expect(await found()).toBeNull();
    clock.set(-3_650 * dayMs);
    expect(await found()).not.toBeNull();
  });
});
