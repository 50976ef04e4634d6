import { describe, expect, test } from "vitest";
import {
  asRequestCount,
  candidates,
  clarity,
  elapsed,
  foreignCredits,
  foreignRequests,
  isAwaited,
  lastServedAt,
  lostTasks,
  residual,
  type SpendLogEntry,
} from "../../../src/core/charges/readings.js";
import { credits } from "../../../src/core/money.js";
import { entry, evidenceOf, lost, minute, reading, start } from "./evidence-fixture.js";

const day = 24 * 60;
/** The reading of these tests: of the tenth minute. */
const at10 = reading(2, 10, 10, 104);
const at = (time: number) => start + time * minute;
const failed = (change: Partial<SpendLogEntry>) => entry(1, 2, 1, { task: "failed", ...change });

describe("what the spend log does not explain of a reading", () => {
  const rest = (entries: SpendLogEntry[], used = 104, hypothesis: "net" | "gross" = "net") =>
    residual(evidenceOf({ entries }), reading(2, 10, 10, used), hypothesis);

  test("is the growth of the counter without the charges of its requests", () => {
    expect(rest([])).toBe(credits(4));
    expect(rest([entry(1, 2, 1)])).toBe(0);
    expect(rest([entry(1, 2, 1, { charged: credits(3) })])).toBe(credits(1));
    expect(rest([entry(1, 2, 1, { charged: null, price: credits(2) })])).toBe(credits(2));
    // Before the baseline, and after the reading.
    expect(rest([entry(1, 0, -1), entry(2, 12, 11)])).toBe(credits(4));
  });

  test("is the charge of an unanswered request, until it was found", () => {
    expect(rest([lost(1, 2, 1)])).toBe(credits(4));
    expect(rest([lost(1, 2, 1, { verdict: "charged", verdictSeq: 8 })])).toBe(0);
    expect(rest([lost(1, 2, 1, { verdict: "charged", verdictSeq: 12 })])).toBe(credits(4));
    expect(rest([lost(1, 2, 1, { verdict: "undecided" })])).toBe(credits(4));
  });

  test("counts a failed task's credits as returned from its end on, of which it may keep some", () => {
    const ended = (minutes: number) => failed({ taskEndedAt: at(minutes), polledSeq: 3 });
    expect([ended(9), ended(10)].map((one) => rest([one], 100))).toEqual([0, 0]);
    expect(rest([failed({ taskEndedAt: at(10) + 1 })], 104)).toBe(0);
    expect(rest([failed({ taskEndedAt: at(9), kept: credits(1) })], 101)).toBe(0);
    expect(rest([ended(9)], 104, "gross")).toBe(0);
    expect(rest([entry(1, 2, 1, { taskEndedAt: at(9) })], 104)).toBe(0);
  });

  test("goes by the poll that found the failure, if the service does not tell the end", () => {
    const looked = (polledSeq: number) => failed({ taskEndedAt: null, polledSeq });
    expect(rest([looked(9)], 100)).toBe(0);
    expect(rest([looked(11)], 104)).toBe(0);
    const untold = reading(2, 10, 10, 100, { servedAt: null });
    const told = failed({ taskEndedAt: at(99), polledSeq: 9 });
    expect(residual(evidenceOf({ entries: [told] }), untold, "net")).toBe(0);
  });
});

describe("the spend log's account of a reading is", () => {
  const of = (...entries: SpendLogEntry[]) => clarity(evidenceOf({ entries, readings: [at10] }), at10);

  test("clear without open or failed tasks", () => {
    expect(of(entry(1, 2, 1), lost(2, 4, 2))).toBe("clear");
  });

  test("pending while a task was not polled since, and clear once it was", () => {
    const open = (polledSeq: number, change: Partial<SpendLogEntry> = {}) =>
      entry(1, 2, 1, { task: "open", taskEndedAt: null, polledSeq, ...change });
    expect(of(open(9))).toBe("pending");
    expect(of(open(11))).toBe("clear");
    expect(of(open(0, { intendedSeq: 12, endedSeq: 13 }))).toBe("clear");
    expect(of(open(0, { outcome: "unknown" }))).toBe("clear");
  });

  test("never clear when a failure was found later that came before it, or up to a minute after", () => {
    const found = (ended: number | null) =>
      of(failed({ taskEndedAt: ended, polledSeq: 12, polledAt: at(12) }));
    expect([found(at(9)), found(at(11) - 1), found(at(11))]).toEqual(["never", "never", "clear"]);
    expect(found(null)).toBe("never");
  });

  test("never clear within four minutes after a failure, or after the poll that found it", () => {
    const found = (ended: number | null, looked: number) =>
      of(failed({ taskEndedAt: ended, polledSeq: 9, polledAt: at(looked) }));
    expect([found(at(6), 6), found(at(6) + 1, 6)]).toEqual(["clear", "never"]);
    expect([found(at(2), 6), found(at(2), 6.1)]).toEqual(["clear", "never"]);
    expect([found(null, 6), found(null, 6.1)]).toEqual(["clear", "never"]);
    // A task that seems to fail in the future has not done so at the reading.
    expect(found(at(20), 2)).toBe("clear");
  });

  test("clear of a failure of a later request", () => {
    expect(of(failed({ intendedSeq: 12, endedSeq: 13, taskEndedAt: at(9), polledSeq: 14 }))).toBe("clear");
  });
});

test("a task is awaited for a day after it was last seen open, or was sent", () => {
  const awaited = (change: Partial<SpendLogEntry>) => {
    const open = entry(1, 2, 1, { task: "open", taskEndedAt: null, polledSeq: 0, polledAt: null, ...change });
    const late = reading(2, 10, day + 10, 104);
    const evidence = evidenceOf({ entries: [open], baseline: reading(1, 1, 0, 100), readings: [late] });
    return isAwaited(evidence, open, late);
  };
  expect([awaited({ endedAt: at(10) + 1 }), awaited({ endedAt: at(10) })]).toEqual([true, false]);
  expect(awaited({ endedAt: at(1), polledSeq: 5, polledAt: at(11) })).toBe(true);
  expect(awaited({ endedAt: at(1), polledSeq: 5, polledAt: at(10) })).toBe(false);
});

describe("the credits that may have come back unseen are", () => {
  const of = (one: SpendLogEntry) =>
    lostTasks(evidenceOf({ entries: [one], baseline: reading(1, 4, 1, 100), readings: [at10] }), at10).length;

  test("those of requests whose tasks nobody knows: found charges, and undecided ones", () => {
    const early = { intendedSeq: 2, endedSeq: 3 };
    expect(of(lost(1, 2, 1, { ...early, verdict: "charged", verdictSeq: 8 }))).toBe(1);
    expect(of(lost(1, 2, 1, { ...early, verdict: "charged", verdictSeq: null }))).toBe(1);
    expect(of(lost(1, 2, 1, { ...early, verdict: "charged", verdictSeq: 12 }))).toBe(0);
    expect(of(lost(1, 2, 1, { ...early, verdict: "undecided" }))).toBe(1);
    expect(of(lost(1, 2, 1, { ...early, verdict: "not_charged" }))).toBe(0);
    expect(of(lost(1, 2, 1, early))).toBe(0);
    expect(of(entry(1, 2, 1, { ...early, verdict: "charged", verdictSeq: 8 }))).toBe(0);
  });

  test("not those of requests after the reading", () => {
    expect(of(lost(1, 12, 11, { verdict: "undecided" }))).toBe(0);
    expect(of(lost(1, 12, 11, { outcome: null, endedSeq: null, endedAt: null }))).toBe(0);
  });

  test("not those of requests that ended a day before the baseline", () => {
    const ended = (time: number) => of(lost(1, 2, 1, { verdict: "undecided", sentAt: time, endedAt: time }));
    expect([ended(at(1 - day) + 1), ended(at(1 - day))]).toEqual([1, 0]);
  });
});

describe("a charge may show in a reading", () => {
  const may = (one: SpendLogEntry) =>
    candidates(evidenceOf({ entries: [one], baseline: reading(1, 4, 1, 100), readings: [at10] }), at10)
      .length;

  test("of a request that was sent before it and has no answer and no verdict", () => {
    expect([may(lost(1, 6, 2)), may(lost(1, 6, 2, { outcome: null })), may(lost(1, 12, 11))]).toEqual([
      1, 1, 0,
    ]);
    expect(may(entry(1, 6, 2))).toBe(0);
    expect(may(lost(1, 6, 2, { verdict: "not_charged" }))).toBe(0);
  });

  test("of a request whose charge was found in a later one", () => {
    const found = (verdictSeq: number | null) => may(lost(1, 6, 2, { verdict: "charged", verdictSeq }));
    expect([found(12), found(8), found(null)]).toEqual([1, 0, 0]);
  });

  test("of an undecided request that ended less than a quarter of an hour before the baseline", () => {
    const ended = (time: number, change: Partial<SpendLogEntry> = {}) =>
      may(lost(1, 2, 1, { verdict: "undecided", sentAt: time, endedAt: time, ...change }));
    expect([ended(at(-14) + 1), ended(at(-14))]).toEqual([1, 0]);
    expect(ended(at(1), { outcome: "accepted" })).toBe(0);
  });
});

describe("use of the key from elsewhere", () => {
  test("shows in credits that neither the spend log nor any unanswered request explains", () => {
    const used = (credit: number, entries: SpendLogEntry[] = []) =>
      foreignCredits(
        evidenceOf({
          entries,
          readings: [reading(2, 7, 4, 300), reading(3, 8, 5, 500), reading(4, 10, 10, credit)],
        }),
      );
    expect(used(110)).toBe(credits(10));
    expect(used(110, [entry(1, 2, 1), lost(2, 6, 2)])).toBe(credits(2));
    expect(used(98)).toBe(0);
    // Whichever way to count a failed task leaves the least.
    expect(used(110, [failed({ taskEndedAt: at(2), polledSeq: 5 })])).toBe(credits(6));
    expect(foreignCredits(evidenceOf({ readings: [] }))).toBe(0);
    expect(foreignCredits(evidenceOf({ readings: [at10], hypotheses: [] }))).toBe(0);
  });

  test("shows in more requests than this machine can have sent, and not in fewer", () => {
    const later = (requests: number) => foreignRequests({ requests: 10, over: 8 }, { requests, sent: 12 });
    expect([13, 14, 15, 20].map(later)).toEqual([0, 0, 1, 6]);
  });

  test("does not show where the service's count is none", () => {
    expect([0, 7, -1, 1.5, "seven", null, Number.NaN].map(asRequestCount)).toEqual([
      0,
      7,
      null,
      null,
      null,
      null,
      null,
    ]);
  });
});

describe("the time from a request's end to a reading", () => {
  const since = (change: Partial<SpendLogEntry>, readings = [at10]) => {
    const one = lost(1, 6, 2, change);
    return elapsed(evidenceOf({ entries: [one], readings }), one, at10) / minute;
  };

  test("is by this machine's clock, where that was not set", () => {
    expect(since({ endedAt: at(4) })).toBe(6);
    const minuteApart = [reading(2, 10, 10, 104, { servedAt: at(11) })];
    expect(since({ endedAt: at(4) }, minuteApart)).toBe(6);
  });

  test("is none for a request that ended after it, or has not ended", () => {
    expect(since({ endedSeq: 12, endedAt: at(4) })).toBe(0);
    expect(since({ endedSeq: null, endedAt: null })).toBe(0);
  });

  test("is only what the service's clock proves, where this machine's was set or the end is not known", () => {
    // The first reading after the end is the only one: nothing is proven yet.
    expect(since({ endedAt: null })).toBe(0);
    const set = [reading(2, 8, 8, 104), reading(3, 10, 10, 104, { at: at(200) })];
    const one = lost(1, 6, 2, { endedAt: at(4) });
    const evidence = evidenceOf({ entries: [one], readings: set });
    expect(elapsed(evidence, one, set[1] ?? at10) / minute).toBe(2);
    // Although it could be right: it was set by less than the request can have taken.
    const ahead = reading(2, 10, 10, 104, { at: at(12) });
    expect(elapsed(evidenceOf({ entries: [one], readings: [ahead] }), one, ahead)).toBe(0);
    // A later reading shows that the clock was set after this one.
    expect(elapsed(evidence, one, set[0] ?? at10) / minute).toBe(4);
  });

  test("is not before the last reading that came before its end", () => {
    const readings = [reading(2, 4, 8, 104), at10];
    // By its own clock it ended before that reading, and by the order after it: the clock was wrong.
    expect(since({ sentAt: at(1), endedAt: at(3) }, readings)).toBe(0);
    expect(since({ sentAt: at(1), endedAt: at(7.5) }, readings)).toBe(2.5);
  });
});

test("the counters were last read at the last reading, or at the baseline, by the service's clock", () => {
  expect(lastServedAt(evidenceOf({ readings: [] }))).toBe(start);
  const readings = [reading(2, 8, 8, 104), reading(3, 10, 10, 104, { at: at(99) })];
  expect(lastServedAt(evidenceOf({ readings }))).toBe(at(10));
  expect(lastServedAt(evidenceOf({ readings: [reading(2, 8, 8, 104, { servedAt: null })] }))).toBe(at(8));
});
