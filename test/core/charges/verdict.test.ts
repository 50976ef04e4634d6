import { describe, expect, test } from "vitest";
import {
  type ChargeEvidence,
  defaultReconcile,
  type LearnedCounting,
  type SpendLogEntry,
} from "../../../src/core/charges/readings.js";
import { isNews, learn } from "../../../src/core/charges/verdict.js";
import { credits } from "../../../src/core/money.js";
import { entry, evidenceOf, judged, lost, minute, reading, start } from "./evidence-fixture.js";

const paid = entry(1, 2, 1);
const unknown = lost(2, 6, 2);
const at = (time: number) => start + time * minute;
const hours = 60;
/** A task that was still open a day later. */
const open = { ...paid, task: "open", taskEndedAt: null, polledSeq: 9, polledAt: at(23 * hours) } as const;

const found = (change: Partial<ChargeEvidence>) =>
  judged({ trusted: true, entries: [paid, unknown], ...change }).verdicts.map(({ entry: of, verdict }) => [
    of,
    verdict,
  ]);
/** The evidence of each verdict, without the time of the reading. */
const evidence = (change: Partial<ChargeEvidence>) =>
  judged({ trusted: true, entries: [paid, unknown], ...change }).verdicts.map(({ evidence: text }) =>
    text.replace(/ \(read .* UTC\)/, ""),
  );
const free = (...times: number[]) => times.map((time, index) => reading(2 + index, 10 + index, time, 104));

describe("P2: that a request cost nothing is proven by two readings", () => {
  test("of which the first is four minutes after its end or later, and the second a quarter of an hour", () => {
    expect(found({ readings: free(7, 12) })).toEqual([]);
    expect(found({ readings: free(3, 18) })).toEqual([]);
    expect(found({ readings: free(18) })).toEqual([]);
    expect(found({ readings: free(18, 19) })).toEqual([[2, "not_charged"]]);
    expect(found({ readings: free(6, 17) })).toEqual([[2, "not_charged"]]);
    expect(found({ readings: free(5.9, 17) })).toEqual([]);
    expect(found({ readings: free(6, 16.9) })).toEqual([]);
  });

  test("that were taken after its end", () => {
    const ended = { ...unknown, endedSeq: 11 };
    expect(found({ entries: [paid, ended], readings: free(7, 18) })).toEqual([]);
  });
});

describe("P6: a person is told why nothing is proven", () => {
  test("of a request before the first reading", () => {
    const early = lost(2, 0, 0);
    expect(evidence({ entries: [early], readings: [reading(2, 10, 20, 100)] })).toEqual([
      "the key's counters were not read before it was sent",
    ]);
    const same = lost(2, 1, 0);
    expect(evidence({ entries: [same], readings: [reading(2, 10, 20, 100)] })).toEqual([
      "the key's counters were not read before it was sent",
    ]);
  });

  test("where the counters never matched", () => {
    expect(evidence({ trusted: false, entries: [unknown], readings: [reading(2, 10, 18, 100)] })).toEqual([
      "the key's counters have not matched the spend log yet",
    ]);
  });

  test("where the key was used from elsewhere", () => {
    const readings = [reading(2, 10, 2, 104, { requests: 12 })];
    expect(evidence({ readings })).toEqual([
      "the key was used from elsewhere, so its counters prove nothing",
    ]);
  });

  test("where the counters do not match", () => {
    // Nobody can have been charged 7 credits before the lost request was sent.
    const readings = [reading(2, 5, 1.5, 111), reading(3, 10, 3, 111)];
    expect(evidence({ readings })).toEqual([
      "the key's counters do not match the spend log, so they prove nothing",
    ]);
  });

  test("where credits of a failed task were being returned at the baseline", () => {
    const failed = entry(1, 0, 0, { task: "failed", taskEndedAt: start - 10 * minute, polledSeq: 3 });
    expect(evidence({ entries: [failed, unknown], readings: [reading(2, 10, 8, 100)] })).toEqual([
      "the key's counters were read while credits of a failed task were being returned",
    ]);
  });

  test("where no reading was clear for a day, because a task stayed open", () => {
    const readings = (last: number) => [reading(2, 10, 24, 104), reading(3, 11, last, 104)];
    const beside = (last: number) => evidence({ entries: [open, unknown], readings: readings(last) });
    expect(beside(24 * hours + 2)).toEqual([]);
    expect(beside(24 * hours + 2.1)).toEqual(["the key's counters could not be read clearly within a day"]);
  });

  test("with how many of several equal requests were charged", () => {
    const three = [paid, unknown, lost(3, 7, 2), lost(4, 8, 2)];
    const of = (used: number, entries = three) =>
      evidence({ entries, readings: [reading(2, 12, 18, used)] })[0];
    const more = "more than bulkgen knows of";
    expect(of(108)).toBe(`the service counts 4 credits ${more}: 1 of 3 unanswered requests was charged`);
    expect(of(112)).toBe(`the service counts 8 credits ${more}: 2 of 3 unanswered requests were charged`);
    expect(of(116)).toBe(`the service counts 12 credits ${more}, the price of all 3 unanswered requests`);
    const together = "but the 3 unanswered requests cost 12 credits together";
    expect(of(120)).toBe(`the service counts 16 credits ${more}, ${together}`);
    expect(of(110)).toBe(`the service counts 6 credits ${more}, ${together}`);
    const dearer = [paid, unknown, lost(3, 7, 2), lost(4, 8, 2, { price: credits(7) })];
    expect(of(108, dearer)).toBe(
      `the service counts 4 credits ${more}, but the 3 unanswered requests cost 15 credits together`,
    );
  });
});

describe("what a reading teaches of the counters", () => {
  const learned = (change: Partial<ChargeEvidence>): LearnedCounting => learn(evidenceOf(change));
  const nothing = { hypotheses: ["net", "gross"], trusted: false, foreignAt: null };

  test("is that they can be trusted, if they grew by just what was charged", () => {
    expect(learned({ entries: [paid], readings: [reading(2, 10, 10, 104)] }).trusted).toBe(true);
  });

  test.each<[string, SpendLogEntry[], number]>([
    ["a request of before the baseline", [entry(1, 0, -1)], 100],
    ["a request of after the reading", [entry(1, 12, 12)], 100],
    ["a request that cost nothing", [entry(1, 2, 1, { charged: credits(0) })], 100],
    ["a request whose charge was not told", [entry(1, 2, 1, { charged: null })], 104],
    ["a request that nobody answered", [lost(1, 2, 1, { verdict: "charged", verdictSeq: 8 })], 104],
  ])("is not that, if it explains %s", (_, entries, used) => {
    expect(learned({ entries, readings: [reading(2, 10, 10, used)] }).trusted).toBe(false);
  });

  test("is not that, as long as one way to count a failed task contradicts it", () => {
    const failed = entry(1, 2, 1, { task: "failed", taskEndedAt: at(1) });
    const facts = { entries: [failed, unknown], readings: [reading(2, 10, 10, 104)] };
    expect(learned(facts)).toEqual(nothing);
  });

  test("is nothing while a task may still end", () => {
    const open = { ...paid, task: "open", taskEndedAt: null, polledSeq: 0 } as const;
    expect(learned({ entries: [open], readings: [reading(2, 10, 10, 104)] })).toEqual(nothing);
    expect(learned({ entries: [open], readings: [reading(2, 10, 10, 90)] })).toEqual(nothing);
  });

  test("is that nothing of them is right, if they match in no way", () => {
    expect(learned({ trusted: true, entries: [paid], readings: [reading(2, 10, 10, 111)] })).toEqual({
      hypotheses: [],
      trusted: false,
      foreignAt: null,
    });
  });

  test("is not that somebody else used the key, if requests of ours never arrived", () => {
    const readings = [reading(2, 10, 10, 104, { requests: 8 })];
    expect(learned({ entries: [paid], readings }).foreignAt).toBeNull();
    const more = [reading(2, 10, 10, 104), reading(3, 12, 12, 104, { requests: 13 })];
    expect(learned({ entries: [paid], readings: more }).foreignAt).toBe(at(12));
  });
});

describe("a judgement is news", () => {
  const known = evidenceOf({ trusted: true, entries: [paid, unknown] });
  const same = {
    verdicts: [],
    hypotheses: known.hypotheses,
    trusted: true,
    foreignAt: null,
    baseline: null,
    unsettled: 1,
    nextReadingAt: null,
    awaited: [],
  };

  test("if it says something that the spend log does not hold, and not else", () => {
    const found = [{ entry: 2, verdict: "charged", evidence: "", seq: 10 }] as const;
    expect(isNews(same, known)).toBe(false);
    expect(isNews({ ...same, baseline: known.baseline.id }, known)).toBe(false);
    expect(isNews({ ...same, verdicts: [...found] }, known)).toBe(true);
    expect(isNews({ ...same, hypotheses: ["net"] }, known)).toBe(true);
    expect(isNews({ ...same, trusted: false }, known)).toBe(true);
    expect(isNews({ ...same, foreignAt: 1 }, known)).toBe(true);
    expect(isNews({ ...same, baseline: 2 }, known)).toBe(true);
  });
});

describe("what cannot be judged", () => {
  test("is left to a person as far as it was sent before the last reading, and what follows is judged later", () => {
    const later = lost(3, 12, 3);
    const readings = [reading(2, 10, 2.5, 104, { requests: 12 })];
    expect(judged({ trusted: true, entries: [paid, unknown, later], readings })).toMatchObject({
      verdicts: [{ entry: 2, verdict: "undecided" }],
      unsettled: 1,
      baseline: 2,
      trusted: true,
      foreignAt: at(2.5),
    });
  });

  test("is left so also without any new reading", () => {
    const early = lost(1, 0, 0);
    expect(judged({ trusted: true, foreignAt: start, entries: [early, unknown] })).toMatchObject({
      verdicts: [{ entry: 1, verdict: "undecided" }],
      baseline: null,
      unsettled: 1,
    });
  });

  test("does not lose the others their verdicts", () => {
    const error = { ...unknown, completeError: true };
    const settings = { ...defaultReconcile, errorIsFree: true };
    const other = lost(3, 8, 2);
    const facts = { trusted: true, settings, entries: [paid, error, other], readings: free(6, 17) };
    expect(judged(facts).verdicts).toEqual([
      {
        entry: 2,
        verdict: "not_charged",
        evidence: "a complete GENERATION_ERROR, which the settings treat as not charged",
        seq: null,
      },
      expect.objectContaining({ entry: 3, verdict: "not_charged" }),
    ]);
    // The one that cost nothing is settled, and explains the rest: that is the other's charge.
    const charged = [reading(2, 10, 6, 108), reading(3, 11, 17, 108)];
    expect(judged({ ...facts, readings: charged }).verdicts.map(({ verdict }) => verdict)).toEqual([
      "not_charged",
      "charged",
    ]);
  });
});

describe("a reading is the next baseline", () => {
  const charge: SpendLogEntry = { ...unknown, verdict: "charged", verdictSeq: 20 };
  const before = reading(2, 10, 5, 104);
  const baseline = (entries: SpendLogEntry[], ...later: ReturnType<typeof reading>[]) =>
    judged({ trusted: true, entries, readings: [before, ...later] }).baseline;

  test("if it is clear, and has every charge that was found of a request before it", () => {
    expect(baseline([paid, charge], reading(3, 20, 6, 108))).toBe(3);
    expect(baseline([paid, charge])).toBeNull();
    // One that was sent after it is no part of it.
    expect(baseline([paid, { ...charge, intendedSeq: 15 }])).toBe(2);
  });

  test("and nothing is unsettled", () => {
    expect(baseline([paid, unknown], reading(2, 10, 3, 104))).toBeNull();
  });
});

describe("another reading is wanted", () => {
  const next = (change: Partial<ChargeEvidence>) => {
    const { nextReadingAt } = judged({ trusted: true, entries: [paid, unknown], ...change });
    return nextReadingAt === null ? null : (nextReadingAt - start) / minute;
  };

  test("for the request that needs one soonest", () => {
    const readings = free(2.5);
    const other = lost(3, 8, 2.4);
    expect(next({ readings })).toBe(6);
    expect(next({ entries: [paid, other, unknown], readings })).toBe(6);
    expect(next({ entries: [paid, unknown, other], readings })).toBe(6);
  });

  test("a minute after one that was wasted, because credits were being returned", () => {
    const failed = entry(1, 2, 1, { task: "failed", taskEndedAt: at(2.5), polledSeq: 8, polledAt: at(2.6) });
    const spoilt = reading(2, 10, 3, 104);
    expect(next({ entries: [failed, unknown], readings: [spoilt] })).toBe(4);
    // One of before its end does not count either.
    expect(next({ readings: [reading(2, 5, 1.5, 104)] })).toBe(2);
  });

  test("at once, if the first one came so late that only a second one is missing", () => {
    expect(next({ readings: free(18) })).toBe(17);
  });

  test("by this machine's clock as it was at the last one, if it was set between two of them", () => {
    const set = reading(4, 12, 12, 104, { at: at(12 + 60) });
    // By the service's time, the last one came five minutes after the first.
    expect(next({ readings: [...free(7, 9), set] })).toBe(12 + 60 - 5 + 15);
  });

  test("a day after its end, if none was clear so far", () => {
    const readings = [reading(2, 10, 7, 104), reading(3, 11, 20, 104), reading(4, 12, 30, 104)];
    expect(next({ entries: [open, unknown], readings })).toBeCloseTo(24 * hours + 2 + 1 / 60, 6);
  });
});
