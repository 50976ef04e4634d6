import { describe, expect, it } from "vitest";
import {
  type ChargeEvidence,
  type CounterReading,
  defaultReconcile,
  nothingLearnedYet,
  type SpendLogEntry,
} from "../../../src/core/charges/readings.js";
import { isNews } from "../../../src/core/charges/verdict.js";
import { credits } from "../../../src/core/money.js";
import { entry, evidenceOf, judged, lost, minute, reading, start } from "./evidence-fixture.js";

const verdicts = (change: Partial<ChargeEvidence>) =>
  judged(change).verdicts.map(({ entry: of, verdict }) => [of, verdict]);

describe("an unanswered request is settled by the key's counters", () => {
  const paid = entry(1, 2, 1);
  const unknown = lost(2, 6, 2);

  it("a charge that the spend log does not explain shows with the first clear reading", () => {
    const readings = [reading(2, 10, 2, 108)];
    expect(verdicts({ entries: [paid, unknown], readings })).toEqual([[2, "charged"]]);
  });

  it("a charge moves the baseline behind it, and is not seen twice", () => {
    const charged: SpendLogEntry = { ...unknown, verdict: "charged", verdictSeq: 10 };
    const later = judged({
      trusted: true,
      baseline: reading(2, 10, 2, 108),
      entries: [paid, charged, entry(3, 11, 3)],
      readings: [reading(3, 14, 4, 112)],
    });
    expect(later).toMatchObject({ hypotheses: ["net", "gross"], baseline: 3, verdicts: [] });
  });

  it("a charge found later than a reading keeps that one from being the baseline, or the next POST would be blamed", () => {
    const late: SpendLogEntry = { ...unknown, verdict: "charged", verdictSeq: 12 };
    const readings = [reading(2, 10, 3, 104), reading(3, 12, 6, 108)];
    const open = entry(3, 13, 7, { task: "open", polledSeq: 0 });
    const readAfter = [...readings, reading(4, 15, 8, 112)];
    expect(
      judged({ trusted: true, entries: [paid, late], readings: readings.slice(0, 1) }).baseline,
    ).toBeNull();
    expect(judged({ trusted: true, entries: [paid, late, open], readings: readAfter }).baseline).toBe(3);
  });

  it("a reading between a POST and its repeat proves nothing: one of the two was charged", () => {
    const repeated = entry(2, 6, 2, { repeatedSeq: 12, endedSeq: 13, polledSeq: 14 });
    const between = reading(2, 10, 3, 104);
    const after = reading(3, 16, 8, 108);
    const evidence = { entries: [paid, repeated], readings: [between, after] };
    // Without the repeat the first reading would contradict the spend log.
    expect(judged(evidence)).toMatchObject({ hypotheses: ["net", "gross"], trusted: true, baseline: 3 });
    expect(judged({ ...evidence, readings: [between] }).baseline).toBeNull();
  });

  it("one that was repeated after the baseline may be in it or not, so its charge is not put down to another", () => {
    const baseline = reading(2, 10, 3, 104);
    const repeated = entry(1, 6, 2, { repeatedSeq: 12, endedSeq: 13, polledSeq: 14 });
    const unanswered = lost(2, 15, 4);
    const shown = (used: number, settled = repeated) =>
      judged({
        trusted: true,
        baseline,
        entries: [settled, unanswered],
        readings: [reading(3, 18, 25, used)],
      }).verdicts.map(({ verdict }) => verdict);
    expect(shown(108)).toEqual(["undecided"]);
    expect(shown(112)).toEqual(["charged"]);
    // A found charge is known to be in the baseline.
    expect(shown(108, { ...repeated, verdict: "charged", verdictSeq: 9 })).toEqual(["charged"]);
  });

  it("no charge is proven by two readings, 4 and 15 minutes after it was given up, and by none before", () => {
    const readings = [reading(2, 10, 2, 104), reading(3, 11, 6, 104), reading(4, 12, 17, 104)];
    expect(verdicts({ entries: [paid, unknown], readings: readings.slice(0, 1) })).toEqual([]);
    expect(verdicts({ entries: [paid, unknown], readings: readings.slice(0, 2) })).toEqual([]);
    expect(verdicts({ entries: [paid, unknown], readings })).toEqual([[2, "not_charged"]]);
  });

  it("asks for the readings that it needs, one after the other", () => {
    const at = (readings: CounterReading[]) => {
      const { nextReadingAt } = judged({ entries: [paid, unknown], readings });
      return nextReadingAt === null ? null : (nextReadingAt - start) / minute;
    };
    expect(at([])).toBe(2);
    expect(at([reading(2, 10, 2, 104)])).toBe(6);
    expect(at([reading(2, 10, 2, 104), reading(3, 11, 6, 104)])).toBe(17);
    expect(judged({ entries: [paid, unknown] }).unsettled).toBe(1);
  });

  it.each([
    ["ten years back", -10 * 365 * 24 * 60],
    ["ten years ahead", 10 * 365 * 24 * 60],
  ])("counts from the last reading on, where the clock was set %s before it", (_, jump) => {
    const readings = [3, 8].map((at, index) =>
      reading(2 + index, 10 + index, at, 104, { at: start + (at + jump) * minute }),
    );
    const { nextReadingAt } = judged({
      entries: [paid, unknown],
      readings,
      now: start + (8 + jump) * minute,
    });
    // By the service's time the second one came five minutes after the first.
    expect(nextReadingAt).toBe(start + (8 - 5 + 15 + jump) * minute);
    const first = judged({
      entries: [paid, unknown],
      readings: readings.slice(0, 1),
      now: start + (3 + jump) * minute,
    });
    expect(first.nextReadingAt).toBe(start + (3 + 4 + jump) * minute);
  });

  it.each([
    ["ten years back", -10 * 365 * 24 * 60],
    ["ten years ahead", 10 * 365 * 24 * 60],
    ["an hour back", -60],
    ["an hour ahead", 60],
  ])(
    "P2, P20: is neither settled sooner nor awaited for longer where the clock was %s just when it ended",
    (_, jump) => {
      const ended = { ...unknown, endedAt: start + (2 + jump) * minute };
      const at = [3, 4, 7, 18].map((minutes, index) => reading(2 + index, 10 + index, minutes, 104));
      const afterFirst = (count: number) => judged({ entries: [paid, ended], readings: at.slice(0, count) });
      // From the first reading after it on, by the service's time.
      expect(afterFirst(1)).toMatchObject({ verdicts: [], nextReadingAt: start + (3 + 4) * minute });
      expect(afterFirst(2)).toMatchObject({ verdicts: [], nextReadingAt: start + (3 + 4) * minute });
      expect(afterFirst(3)).toMatchObject({ verdicts: [], nextReadingAt: start + (3 + 15) * minute });
      expect(afterFirst(4).verdicts).toMatchObject([{ verdict: "not_charged" }]);
    },
  );

  it("wants the first reading at once, though the clock was put back since the POST ended", () => {
    const now = start - 10 * 365 * 24 * 60 * minute;
    expect(judged({ entries: [paid, unknown], now }).nextReadingAt).toBe(now);
  });

  it("tells which tasks somebody has to look at before a reading is clear", () => {
    const open = entry(3, 3, 1, { task: "open", polledSeq: 5, taskEndedAt: null });
    const other = entry(4, 4, 1, { task: "open", polledSeq: 0, taskEndedAt: null });
    const readings = [reading(2, 8, 2, 112), reading(3, 12, 6, 112)];
    const awaited = (entries: SpendLogEntry[]) =>
      judged({ entries: [paid, unknown, ...entries], readings }).awaited;
    expect(awaited([])).toEqual([]);
    expect(awaited([open, other])).toEqual([3, 4]);
    expect(awaited([{ ...open, polledSeq: 9 }, other])).toEqual([3, 4]);
    expect(awaited([{ ...open, polledSeq: 13 }, other])).toEqual([4]);
    expect(awaited([{ ...open, intendedSeq: 13 }])).toEqual([]);
  });

  it("is news only when something was found that the spend log does not have", () => {
    const isNewsOf = (change: Partial<ChargeEvidence>) => isNews(judged(change), evidenceOf(change));
    const entries = [paid, unknown];
    expect(isNewsOf({ entries, readings: [] })).toBe(false);
    expect(isNewsOf({ entries, readings: [reading(2, 10, 2, 104)] })).toBe(true);
    expect(isNewsOf({ entries, readings: [reading(2, 10, 2, 104)], trusted: true })).toBe(false);
    expect(isNewsOf({ entries, readings: [reading(2, 10, 2, 108)], trusted: true })).toBe(true);
    expect(isNewsOf({ entries: [paid], readings: [reading(2, 10, 2, 104)], trusted: true })).toBe(true);
  });

  it("is held when the counters were never seen to match the spend log", () => {
    const readings = [reading(2, 10, 6, 100), reading(3, 11, 17, 100)];
    expect(verdicts({ entries: [unknown], readings })).toEqual([[2, "undecided"]]);
    expect(verdicts({ entries: [unknown], readings, trusted: true })).toEqual([[2, "not_charged"]]);
  });

  it("a complete error of the service needs one reading, and by the settings none", () => {
    const failed = { ...unknown, completeError: true };
    const readings = [reading(2, 10, 2, 104)];
    expect(verdicts({ entries: [paid, failed], readings: [] })).toEqual([]);
    expect(verdicts({ entries: [paid, failed], readings })).toEqual([[2, "not_charged"]]);
    const settings = { ...defaultReconcile, errorIsFree: true };
    expect(verdicts({ entries: [paid, failed], readings: [], settings })).toEqual([[2, "not_charged"]]);
    expect(verdicts({ entries: [paid, unknown], readings: [], settings })).toEqual([]);
  });

  it("a reading shows a charge, or none, only when the end of every task that was open at it is known", () => {
    const open = entry(1, 2, 1, { task: "open", taskEndedAt: null, polledSeq: 0 });
    const seenOpen = { ...open, polledSeq: 12 };
    const found = (task: SpendLogEntry, used: number, change: Partial<ChargeEvidence> = {}) =>
      verdicts({
        trusted: true,
        ...change,
        entries: [task, unknown],
        readings: [reading(2, 10, 6, used), reading(3, 11, 17, used)],
      });
    expect(found(open, 104)).toEqual([]);
    expect(found(open, 104, { hypotheses: ["gross"] })).toEqual([]);
    expect(found(seenOpen, 104)).toEqual([[2, "not_charged"]]);
    expect(found(open, 108)).toEqual([]);
    expect(found(seenOpen, 108)).toEqual([[2, "charged"]]);
  });

  describe("P5: several unanswered requests were all charged, or none was, or nothing is proven", () => {
    const dear = lost(3, 8, 2, { price: credits(7) });
    const found = (used: number) =>
      verdicts({
        entries: [paid, unknown, dear],
        readings: [reading(2, 12, 3, used), reading(3, 13, 7, used), reading(4, 14, 19, used)],
      });
    const both = (verdict: string) => [
      [2, verdict],
      [3, verdict],
    ];

    it("none, if the key was charged nothing more: the common case of an outage", () => {
      expect(found(104)).toEqual(both("not_charged"));
    });

    it("all, if the key was charged the sum of their prices", () => {
      expect(found(115)).toEqual(both("charged"));
    });

    it.each([
      ["the price of the one", 108],
      ["the price of the other", 111],
      ["another amount", 109.5],
      ["more than the sum", 116],
    ])("a person judges, if it was charged %s", (_, used) => {
      expect(found(used)).toEqual(both("undecided"));
    });

    it("a request of a process that is gone is one of them", () => {
      const gone = lost(3, 8, 2, { outcome: null, endedSeq: null, endedAt: null });
      const readings = [reading(2, 12, 3, 108)];
      expect(verdicts({ entries: [paid, unknown], readings })).toEqual([[2, "charged"]]);
      expect(verdicts({ entries: [paid, unknown, gone], readings })).toEqual([]);
    });
  });

  it("P2: one that may have been charged a price of which nobody knew yet is not taken for free", () => {
    // Both were planned at 4, and 3 was charged; the next was planned at 3. One of the two that were lost was charged 3.
    const surprise = entry(1, 2, 1, { charged: credits(3) });
    const before = lost(2, 4, 1);
    const after = lost(3, 6, 2, { price: credits(3) });
    const readings = [reading(2, 10, 8, 106), reading(3, 11, 20, 106)];
    const lostBoth = { trusted: true, entries: [surprise, before, after], readings };
    expect(verdicts(lostBoth)).toEqual([
      [2, "undecided"],
      [3, "undecided"],
    ]);
    const free = lostBoth.readings.map((each) => ({ ...each, used: credits(103) }));
    expect(verdicts({ ...lostBoth, readings: free })).toEqual([
      [2, "not_charged"],
      [3, "not_charged"],
    ]);
  });

  it("P2: a charge of a price that nobody knows is not taken for a later request's, though that was to cost as much", () => {
    // It was planned at 4 and charged 3; then the next was planned at 3, and not charged.
    const odd = lost(2, 6, 2);
    const next = lost(3, 12, 3, { price: credits(3) });
    const settled = [reading(4, 20, 8, 103), reading(5, 21, 20, 103)];
    const readings = [reading(2, 10, 2, 103), reading(3, 16, 3, 103)];
    const both = { trusted: true, entries: [odd, next] };
    expect(verdicts({ ...both, readings })).toEqual([]);
    expect(verdicts({ ...both, readings: [...readings, ...settled] })).toEqual([
      [2, "undecided"],
      [3, "undecided"],
    ]);
  });

  it("credits of a failed task that may still be on their way back decide nothing", () => {
    const failed = entry(1, 2, 1, { task: "failed", taskEndedAt: start + 1.5 * minute });
    // Given back or not: 4 credits more than the baseline are the failed task's or the lost one's.
    expect(verdicts({ entries: [failed, unknown], readings: [reading(2, 10, 2, 104)] })).toEqual([]);
    // Long after its end both ways to count remain possible, and say different things.
    expect(verdicts({ entries: [failed, unknown], readings: [reading(2, 10, 8, 104)] })).toEqual([]);
    const net = {
      entries: [failed, unknown],
      readings: [reading(2, 10, 8, 104)],
      hypotheses: ["net" as const],
    };
    expect(verdicts(net)).toEqual([[2, "charged"]]);
    const gross = judged({ ...net, hypotheses: ["gross"], trusted: true });
    expect(gross).toMatchObject({ verdicts: [], unsettled: 1 });
  });

  it("credits that a failed task gave back once it was looked at do not hide the charge of an unanswered request", () => {
    // It had failed before the first reading, which was taken before anybody knew: its 4 credits were in the counter.
    const failed = entry(1, 0, 0, { task: "failed", taskEndedAt: start - 10 * minute, polledSeq: 3 });
    const hidden = {
      trusted: true,
      entries: [failed, unknown],
      readings: [reading(2, 10, 8, 100), reading(3, 20, 20, 100)],
    };
    expect(verdicts(hidden)).toEqual([[2, "undecided"]]);
    const sentAt = start - 20 * minute;
    const earlier: SpendLogEntry = { ...failed, sentAt, polledSeq: 0, polledAt: start - 5 * minute };
    expect(verdicts({ ...hidden, entries: [earlier, unknown] })).toEqual([[2, "not_charged"]]);
  });

  it("a failed task's credits are waited for by the service's clock when this machine's was set", () => {
    const failed = entry(1, 2, 1, { task: "failed", taskEndedAt: start - 10 * minute, polledAt: start });
    const seen = (hours: number) =>
      judged({
        trusted: true,
        hypotheses: ["net" as const],
        entries: [failed, unknown],
        readings: [
          reading(2, 10, 2, 104, { at: start + 2 * minute + hours * 60 * minute }),
          reading(3, 20, 3, 104, { at: start + 3 * minute + hours * 60 * minute }),
        ],
      }).verdicts;
    expect(seen(1)).toEqual([]);
  });

  it("a service that tells no time is not held against this machine's clock", () => {
    // The clock was put back: by it the task has not failed yet at the readings, though its credits are back.
    const failed = entry(1, 2, 1, { task: "failed", taskEndedAt: start + 90 * minute });
    const readings = [
      reading(2, 10, 8, 104, { servedAt: null }),
      reading(3, 20, 20, 104, { servedAt: null }),
    ];
    const found = verdicts({ trusted: true, hypotheses: ["net"], entries: [failed, unknown], readings });
    expect(found).toEqual([[2, "charged"]]);
  });

  it("learns from a clear reading how failed tasks are counted", () => {
    const failed = entry(1, 2, 1, { task: "failed", taskEndedAt: start + minute });
    const other = entry(3, 4, 1);
    expect(judged({ entries: [failed, other], readings: [reading(2, 10, 10, 104)] })).toMatchObject({
      hypotheses: ["net"],
      trusted: true,
      baseline: 2,
    });
    expect(judged({ entries: [failed, other], readings: [reading(2, 10, 10, 108)] }).hypotheses).toEqual([
      "gross",
    ]);
  });

  it("counters that match in no way prove nothing, from then on anew", () => {
    const odd = judged({ trusted: true, entries: [paid], readings: [reading(2, 10, 10, 111)] });
    expect(odd).toMatchObject({ ...nothingLearnedYet, baseline: 2 });
    const held = judged({ trusted: true, entries: [paid, unknown], readings: [reading(2, 5, 1, 111)] });
    expect(held).toMatchObject({ verdicts: [], unsettled: 1, baseline: 2 });
  });

  it("a key that is used from elsewhere proves nothing for a day", () => {
    const readings = [reading(2, 10, 2, 104, { requests: 12 })];
    const foreign = judged({ trusted: true, entries: [paid, unknown], readings });
    expect(foreign.verdicts).toMatchObject([{ verdict: "undecided" }]);
    expect(foreign.foreignAt).toBe(start + 2 * minute);
    const next = {
      trusted: true,
      foreignAt: start,
      entries: [paid, unknown],
      readings: [reading(2, 10, 17, 104)],
    };
    expect(verdicts(next)).toEqual([[2, "undecided"]]);
  });

  it.each([
    ["ten years back", -10 * 365 * 24 * 60],
    ["ten years ahead", 10 * 365 * 24 * 60],
  ])("P5, P20: nor sooner or later where the clock was set %s since", (_, jump) => {
    const set = (...[id, seq, at, used]: [number, number, number, number]) =>
      reading(id, seq, at, used, { at: start + (at + jump) * minute });
    const ended = { ...unknown, endedAt: start + (2 + jump) * minute };
    const seen = (minutes: number) =>
      verdicts({
        trusted: true,
        foreignAt: start - minutes * minute,
        baseline: set(1, 1, 0, 100),
        entries: [paid, ended],
        readings: [set(2, 10, 3, 104), set(3, 11, 7, 104), set(4, 12, 18, 104)],
        now: start + (18 + jump) * minute,
      });
    expect(seen(23 * 60)).toEqual([[2, "undecided"]]);
    expect(seen(24 * 60)).toEqual([[2, "not_charged"]]);
  });

  describe("P6: the evidence tells how much the key was charged, and for how many requests", () => {
    const evidence = (used: number, change: Partial<ChargeEvidence> = {}) =>
      judged({
        trusted: true,
        entries: [paid, unknown, lost(3, 8, 3, { price: credits(7) })],
        readings: [reading(2, 12, 3, used), reading(3, 13, 7, used), reading(4, 14, 19, used)],
        ...change,
      }).verdicts.map(({ evidence: text }) => text.replace(/ \(read .* UTC\)/, ""));
    const more = "more than bulkgen knows of";

    it("nothing", () => {
      const nothing = "the service counts no credits that bulkgen does not know of";
      expect(evidence(104)).toEqual([nothing, nothing]);
    });

    it("the price of all, where all were charged", () => {
      const all = `the service counts 11 credits ${more}, the price of all 2 unanswered requests`;
      expect(evidence(115)).toEqual([all, all]);
      expect(evidence(108, { entries: [paid, unknown] })).toEqual([`the service counts 4 credits ${more}`]);
    });

    it("all of them together, where it is not known whose the charge is", () => {
      const whose = `the service counts 4 credits ${more}, but the 2 unanswered requests cost 11 credits together`;
      expect(evidence(108)).toEqual([whose, whose]);
    });

    it("how many of them were charged, where all cost the same", () => {
      const entries = [paid, unknown, lost(3, 8, 3, { price: credits(4) })];
      const one = `the service counts 4 credits ${more}: 1 of 2 unanswered requests was charged`;
      expect(evidence(108, { entries })).toEqual([one, one]);
    });

    it("a single request's price, where the charge is another", () => {
      const other = `the service counts 3 credits ${more}, but the unanswered request costs 4 credits`;
      expect(evidence(107, { entries: [paid, unknown] })).toEqual([other]);
    });

    it("that a failed task hides it, as long as nobody knows whether its credits are returned", () => {
      const failed = entry(1, 2, 1, { task: "failed", taskEndedAt: start + minute });
      const readings = [reading(2, 12, 8, 104), reading(3, 14, 20, 104)];
      expect(evidence(104, { entries: [failed, unknown], readings })).toEqual([
        "it is not known yet whether failed tasks keep their credits, so the key's counters prove nothing",
      ]);
    });

    it("when the counters were read, by the service's clock", () => {
      const readings = [reading(2, 12, 3, 108, { at: start + 3_650 * 24 * 60 * minute })];
      const [found] = judged({ trusted: true, entries: [paid, unknown], readings }).verdicts;
      expect(found?.evidence).toContain(
        `(read ${new Date(start + 3 * minute).toISOString().slice(0, 19).replace("T", " ")} UTC)`,
      );
    });
  });

  it("the bracket before the second one tells them apart", () => {
    const second = lost(3, 12, 3);
    const readings = [reading(2, 10, 2, 108), reading(3, 14, 3, 108)];
    expect(verdicts({ entries: [paid, unknown, second], readings })).toEqual([[2, "charged"]]);
  });

  it("a charge that is not its price is for a person to judge", () => {
    const readings = [reading(2, 10, 6, 107), reading(3, 11, 17, 107)];
    expect(verdicts({ entries: [paid, unknown], readings })).toEqual([[2, "undecided"]]);
  });

  it("a request sent before anything was read is for a person to judge", () => {
    expect(verdicts({ entries: [lost(2, 0, 0)], readings: [reading(2, 10, 20, 100)] })).toEqual([
      [2, "undecided"],
    ]);
  });

  it("a clock that was set proves nothing sooner: the service's time counts", () => {
    const jump = 20 * minute;
    const jumped = (id: number, seq: number, at: number) => {
      const { servedAt } = reading(id, seq, at, 104);
      return reading(id, seq, at, 104, { at: (servedAt ?? 0) + jump });
    };
    const entries = [paid, unknown];
    expect(
      verdicts({ entries, readings: [reading(2, 10, 2, 104), jumped(3, 11, 3), jumped(4, 12, 4)] }),
    ).toEqual([]);
    const late = [reading(2, 10, 2, 104), jumped(3, 11, 7), jumped(4, 12, 18)];
    expect(verdicts({ entries, readings: late })).toEqual([[2, "not_charged"]]);
  });

  it("after a day without a clear reading a person has to judge", () => {
    const open = { ...paid, task: "open" as const, taskEndedAt: null, polledSeq: 0 };
    const readings = [reading(2, 10, 2, 104), reading(3, 11, 7, 104), reading(4, 12, 20, 104)];
    const waiting = judged({ entries: [open, unknown], readings });
    expect(waiting).toMatchObject({ verdicts: [], nextReadingAt: start + (24 * 60 + 2) * minute + 1_000 });
    const last = reading(5, 13, 24 * 60 + 3, 104);
    expect(verdicts({ entries: [open, unknown], readings: [...readings, last] })).toEqual([[2, "undecided"]]);
  });

  describe("after a charge whose task was lost, and may fail and give its credits back", () => {
    const gone: SpendLogEntry = { ...lost(1, 2, 1), verdict: "charged", verdictSeq: 4 };
    const baseline = reading(1, 4, 1, 104);
    const later = (used: number) => [
      reading(2, 10, 3, used),
      reading(3, 11, 6, used),
      reading(4, 12, 17, used),
    ];
    const same = { trusted: true, baseline, entries: [gone, lost(3, 7, 2)] };

    it("P2: no growth proves nothing of a request that cost as much", () => {
      expect(verdicts({ ...same, readings: later(104) })).toEqual([[3, "undecided"]]);
      expect(judged({ ...same, readings: later(104) }).verdicts[0]?.evidence).toMatch(/lost task/);
    });

    it("P2: nor of one that cost less, unless failed tasks keep their credits", () => {
      const other = { ...same, entries: [gone, lost(3, 7, 2, { price: credits(3) })] };
      expect(verdicts({ ...other, readings: later(104) })).toEqual([[3, "undecided"]]);
      expect(verdicts({ ...same, hypotheses: ["gross"], readings: later(104) })).toEqual([
        [3, "not_charged"],
      ]);
    });

    it("P5: the charge of another shows all the same: returned credits never look like one", () => {
      expect(verdicts({ ...same, readings: later(108) })).toEqual([[3, "charged"]]);
    });

    it("more credits than it cost cannot have come back from it", () => {
      const back = judged({ trusted: true, baseline, entries: [gone], readings: [reading(2, 10, 3, 99)] });
      expect(back).toMatchObject({ ...nothingLearnedYet, baseline: 2 });
    });

    it("credits that did come back are no contradiction, and a day later it is settled", () => {
      const back = judged({ trusted: true, baseline, entries: [gone], readings: [reading(2, 10, 3, 100)] });
      expect(back).toMatchObject({ hypotheses: ["net"], trusted: true, baseline: 2 });
      const endedAt = start - 24 * 60 * minute;
      const old = { ...gone, sentAt: endedAt, endedAt };
      expect(verdicts({ ...same, entries: [old, lost(3, 7, 2)], readings: later(104) })).toEqual([
        [3, "not_charged"],
      ]);
    });
  });

  it("P20: a charge that was lost after the baseline is no older than it, though the clock was put back", () => {
    const gone = lost(1, 5, 1, { verdict: "charged", verdictSeq: 6, endedAt: start - 3 * 24 * 60 * minute });
    const readings = [reading(2, 10, 3, 104), reading(3, 11, 6, 104), reading(4, 12, 17, 104)];
    const entries = [gone, lost(3, 7, 2)];
    const baseline = reading(1, 4, 0, 100);
    expect(verdicts({ trusted: true, baseline, entries, readings })).toEqual([[3, "undecided"]]);
  });

  describe("beside an open task that nobody looks at, because its workspace is gone", () => {
    const day = 24 * 60;
    const openSince = (at: number, change: Partial<SpendLogEntry> = {}) =>
      entry(1, 2, at, { task: "open", taskEndedAt: null, polledSeq: 0, polledAt: null, ...change });
    const baseline = reading(1, 4, 0, 104);
    const later = (used: number) => [
      reading(2, 10, 3, used),
      reading(3, 11, 6, used),
      reading(4, 12, 17, used),
    ];
    const beside = (open: SpendLogEntry, change: Partial<ChargeEvidence> = {}) =>
      judged({ trusted: true, baseline, entries: [open, lost(3, 7, 2)], readings: later(104), ...change });
    const found = ({ verdicts }: ReturnType<typeof judged>) => verdicts.map(({ verdict }) => verdict);

    it("readings wait for a day, as some look may still come, and no longer", () => {
      const young = openSince(-day + 20);
      expect(beside(young)).toMatchObject({ verdicts: [], awaited: [1] });
      const old = openSince(-2 * day);
      expect(beside(old)).toMatchObject({ verdicts: [{ verdict: "not_charged" }], awaited: [] });
    });

    it("a day counts from the last look at which it was still open", () => {
      const seen = openSince(-60 * day, { polledSeq: 3, polledAt: start - day * minute + 20 * minute });
      expect(beside(seen)).toMatchObject({ verdicts: [], awaited: [1] });
    });

    it("P2: what may have come back since the baseline proves nothing of a request that cost as much", () => {
      const since = { baseline: reading(1, 1, -60 * day, 100) };
      const open = openSince(-59 * day);
      expect(found(beside(open, since))).toEqual(["undecided"]);
      expect(found(beside(open, { ...since, readings: later(108) }))).toEqual(["charged"]);
      const early = openSince(-day);
      expect(found(beside(early, { baseline: reading(1, 4, -5, 104) }))).toEqual(["undecided"]);
    });

    it("a reading without anything unsettled is the next baseline, whatever came back", () => {
      const alone = (used: number) =>
        judged({
          trusted: true,
          baseline: reading(1, 1, -60 * day, 100),
          entries: [openSince(-59 * day)],
          readings: [reading(2, 10, 3, used)],
        });
      expect(alone(104)).toMatchObject({ baseline: 2, hypotheses: ["net", "gross"] });
      expect(alone(100)).toMatchObject({ baseline: 2, hypotheses: ["net"], trusted: true });
    });
  });

  describe("after one that nobody could judge, because the counters were not read before it", () => {
    const baseline = reading(1, 4, 1, 100);
    const early = lost(1, 2, 1, { verdict: "undecided" });
    const later = [reading(2, 10, 3, 104), reading(3, 11, 6, 104), reading(4, 12, 17, 104)];
    const both = (first: SpendLogEntry) => ({
      trusted: true,
      baseline,
      entries: [first, lost(3, 7, 2)],
      readings: later,
    });

    it("P5: the charge of the one may have come late, and is not blamed on the other", () => {
      expect(verdicts(both(early))).toEqual([[3, "undecided"]]);
    });

    it("a quarter of an hour after it the baseline holds what it cost", () => {
      const at = (endedAt: number) => ({ ...early, sentAt: endedAt, endedAt });
      expect(verdicts(both(at(start - 14 * minute)))).toEqual([[3, "charged"]]);
      expect(verdicts(both(at(start - 13 * minute)))).toEqual([[3, "undecided"]]);
    });

    it("a charge that came late is no contradiction", () => {
      const alone = judged({ trusted: true, baseline, entries: [early], readings: [reading(2, 10, 3, 104)] });
      expect(alone).toMatchObject({ hypotheses: ["net", "gross"], trusted: true, baseline: 2 });
    });
  });

  it("P2: a task that a person adopted gives back its credits when it fails, and hides no charge by that", () => {
    const adopted = lost(1, 2, 1, {
      outcome: "accepted",
      verdict: "charged",
      verdictSeq: 4,
      charged: credits(4),
    });
    const failed: SpendLogEntry = {
      ...adopted,
      task: "failed",
      taskEndedAt: start + 3 * minute,
      polledSeq: 9,
    };
    const facts = { trusted: true, hypotheses: ["net"] as const, baseline: reading(1, 4, 1, 104) };
    const readings = [reading(2, 12, 12, 104), reading(3, 13, 17, 104), reading(4, 14, 28, 104)];
    const unanswered = lost(3, 7, 2);
    expect(verdicts({ ...facts, entries: [failed, unanswered], readings })).toEqual([[3, "charged"]]);
    const free = readings.map((each) => ({ ...each, used: credits(100) }));
    expect(verdicts({ ...facts, entries: [failed, unanswered], readings: free })).toEqual([
      [3, "not_charged"],
    ]);
  });

  it("a clock that is put forward by a day makes none of it", () => {
    const open = { ...paid, task: "open" as const, taskEndedAt: null, polledSeq: 0 };
    const ahead = 2 * 24 * 60;
    const after = { servedAt: start + 3 * minute };
    const readings = [reading(2, 10, 2, 104), reading(3, 11, ahead, 104, after)];
    const now = start + ahead * minute;
    expect(verdicts({ entries: [open, unknown], readings, now })).toEqual([]);
  });
});
