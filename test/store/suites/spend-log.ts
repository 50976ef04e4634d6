import { beforeEach, describe, expect, test } from "vitest";
import { defaultReconcile } from "../../../src/core/charges/readings.js";
import { reconcile } from "../../../src/core/charges/verdict.js";
import { credits, noCredits } from "../../../src/core/money.js";
import type { SpendLog } from "../../../src/store/accounts/spend-log.js";
import { ManualClock } from "../../manual-clock.js";
import type { OpenDatabase } from "./open.js";

export function spendLogSuite(open: OpenDatabase): void {
  const minuteMs = 60_000;
  const hourMs = 60 * minuteMs;
  const years = 3_650 * 24 * hourMs;
  const owner = { origin: "https://service.example", fingerprint: "f1", workspace: "here" };

  let clock: ManualClock;
  let spendLog: SpendLog;
  /** Of another workspace with the same key. */
  let elsewhere: SpendLog;

  beforeEach(async () => {
    clock = new ManualClock();
    const { accounts } = await open(clock);
    await accounts.accountOf(owner.origin, owner.fingerprint);
    spendLog = accounts.spendLog(owner);
    elsewhere = accounts.spendLog({ ...owner, workspace: "elsewhere" });
  });

  /** The service's clock is the one that nobody sets. */
  const served = () => clock.monotonic();
  const buy = (by = spendLog) => by.intend({ itemKey: "k", price: credits(4), at: served() });
  const read = (used: number) =>
    spendLog.read({ used: credits(used), requests: 0, over: -1, servedAt: served() });

  async function evidence() {
    const found = await spendLog.evidence(defaultReconcile);
    if (!found) throw new Error("nothing was read");
    return found;
  }

  async function judge(): Promise<unknown[]> {
    const seq = await spendLog.seq();
    const judgement = reconcile(await evidence());
    await spendLog.keep(judgement, seq);
    return judgement.verdicts.map(({ entry, verdict }) => [entry, verdict]);
  }

  /** A request whose charge of 4 credits matches the counter, which is trusted from then on. */
  async function earnTrust(): Promise<void> {
    await read(0);
    const paid = await buy();
    await spendLog.answered(paid, { outcome: "accepted", charged: credits(4) });
    await spendLog.polled(paid, { task: "completed", charged: credits(4), endedAt: served() });
    await read(4);
    await judge();
  }

  /** One is lost and charged 4 credits; meanwhile the task of an earlier one fails, which gives as many back. */
  async function loseAnother(): Promise<{ later: number; verdicts: unknown[] }> {
    const later = await buy();
    await spendLog.answered(later, { outcome: "unknown", completeError: false });
    const verdicts: unknown[] = [];
    for (const minutes of [1, 5, 15]) {
      clock.advance(minutes * minuteMs);
      await read(8);
      verdicts.push(...(await judge()));
    }
    return { later, verdicts };
  }

  test("the newest paid request of a workspace is known by its time, whichever key it had", async () => {
    expect(await spendLog.newestPaid(0)).toBeNull();
    const began = clock.now();
    clock.advance(minuteMs);
    const first = await buy();
    expect(await spendLog.newestPaid(began)).toBeNull();
    await spendLog.answered(first, { outcome: "accepted", charged: credits(4), taskId: "t1" });
    await spendLog.answered(await buy(), { outcome: "free" });
    await spendLog.answered(await buy(elsewhere), { outcome: "unknown", completeError: false });
    expect(await spendLog.newestPaid(began)).toMatchObject({ entry: first, itemKey: "k", taskId: "t1" });
    expect(await spendLog.newestPaid(clock.now())).toBeNull();
  });

  test("P2: what was read before a request was repeated proves nothing about it", async () => {
    await earnTrust();
    const lost = await buy();
    await spendLog.answered(lost, { outcome: "unknown", completeError: true });
    expect(await spendLog.repeats(lost)).toBe(true);
    // On its way once more.
    expect(await judge()).toEqual([]);
    expect(await spendLog.open()).toMatchObject([{ entry: lost, answered: false }]);
    await spendLog.answered(lost, { outcome: "unknown", completeError: false });
    await read(4);
    expect(await judge()).toEqual([]);
    const [first, second] = defaultReconcile.settleMs;
    clock.advance(first);
    await read(4);
    clock.advance(second);
    await read(4);
    expect(await judge()).toEqual([[lost, "not_charged"]]);
    // Another workspace may have had it judged meanwhile.
    expect(await spendLog.repeats(lost)).toBe(false);
  });

  test("what other workspaces have paid for, or may have, is known, unless it failed", async () => {
    const began = clock.now();
    clock.advance(minuteMs);
    const found = async (by: SpendLog) => {
      const entries: [entry: number, isInDoubt: boolean][] = [];
      for await (const page of by.paidElsewhere(began))
        entries.push(...page.map(({ entry, isInDoubt }): [number, boolean] => [entry, isInDoubt]));
      return entries;
    };
    const paid = await buy(elsewhere);
    const failed = await buy(elsewhere);
    for (const entry of [paid, failed, await buy()])
      await spendLog.answered(entry, { outcome: "accepted", charged: credits(4), taskId: `t${entry}` });
    const lost = await buy(elsewhere);
    await spendLog.answered(lost, { outcome: "unknown", completeError: false });
    await spendLog.answered(await buy(elsewhere), { outcome: "free" });
    const begun = await buy(elsewhere);
    const others = [
      [lost, true],
      [begun, true],
    ];
    expect(await found(spendLog)).toEqual([[paid, false], [failed, false], ...others]);
    await spendLog.polled(failed, { task: "failed", charged: noCredits, endedAt: null });
    expect(await found(spendLog)).toEqual([[paid, false], ...others]);
    expect(await found(elsewhere)).toHaveLength(1);
  });

  test("P5, P20: a task that fails after the baseline is evidence, though the clock was ten years ahead at that one", async () => {
    const failing = await buy();
    await spendLog.answered(failing, { outcome: "accepted", charged: credits(4) });
    clock.set(years);
    await read(4);
    clock.set(-years);
    clock.advance(hourMs);
    await spendLog.polled(failing, { task: "failed", charged: noCredits, endedAt: served() });
    expect((await evidence()).entries.map(({ id }) => id)).toEqual([failing]);
  });

  describe.each([
    ["right", 0],
    ["ten years back, then put right", -years],
  ])("a request before the baseline, where the clock was %s", (_, by) => {
    beforeEach(() => clock.set(by));

    test("P2, P20: is lost, and what its task gives back does not hide the charge of a later one", async () => {
      await earnTrust();
      const orphan = await buy();
      await spendLog.answered(orphan, { outcome: "unknown", completeError: false });
      await read(8);
      expect(await judge()).toEqual([[orphan, "charged"]]);
      clock.set(-by);
      clock.advance(minuteMs);
      await read(8);
      await judge();
      const { later, verdicts } = await loseAnother();
      expect(verdicts).not.toContainEqual([later, "not_charged"]);
    });

    test("P5, P20: is evidence for a day, by the service's time, once its task has failed", async () => {
      const failed = await buy();
      await spendLog.answered(failed, { outcome: "accepted", charged: credits(4) });
      await spendLog.polled(failed, { task: "failed", charged: noCredits, endedAt: null });
      clock.set(-by);
      await read(0);
      expect((await evidence()).entries.map(({ id }) => id)).toEqual([failed]);
      clock.advance(25 * hourMs);
      await read(0);
      await judge();
      expect((await evidence()).entries).toEqual([]);
    });
  });

  test.each([
    ["is in the spend log", "accepted"],
    ["is in the spend log as lost", "unknown"],
    ["was never booked", null],
  ] as const)(
    "P2: what a task of a process that was killed gives back hides no charge: its answer %s",
    async (_, known) => {
      await earnTrust();
      const gone = await buy(elsewhere);
      if (known === "accepted") await elsewhere.answered(gone, { outcome: "accepted", charged: credits(4) });
      if (known === "unknown") await elsewhere.answered(gone, { outcome: "unknown", completeError: false });
      clock.advance(1_000);
      // Its charge is in the counter when this workspace begins.
      await read(8);
      await judge();
      const { later, verdicts } = await loseAnother();
      expect(verdicts).not.toContainEqual([later, "not_charged"]);
    },
  );
}
