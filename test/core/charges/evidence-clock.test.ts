import { describe, expect, it } from "vitest";
import type { ChargeEvidence, SpendLogEntry } from "../../../src/core/charges/readings.js";
import { entry, judged, lost, minute, reading, start } from "./evidence-fixture.js";

const day = 24 * 60;
const years = 3_650 * day;

const found = (change: Partial<ChargeEvidence>) =>
  judged({ trusted: true, ...change }).verdicts.map(({ entry: of, verdict }) => [of, verdict]);

describe.each([
  ["right", 0],
  ["an hour back", -60],
  ["sixteen minutes back", -16],
])("an unanswered request that ended two hours after the last reading, while the clock was %s", (_, by) => {
  const unknown = lost(2, 6, 120, { endedAt: start + (120 + by) * minute });
  const entries = [entry(1, 2, 1), unknown];
  const once = [reading(2, 10, 120.1, 104), reading(3, 11, 120.2, 104)];

  it("P2, P20: is not proven to have cost nothing within a minute", () => {
    expect(found({ entries, readings: once })).toEqual([]);
  });

  it("P5, P20: is settled a quarter of an hour after the first reading, as any other", () => {
    const late = [...once, reading(4, 12, 124.2, 104), reading(5, 13, 135.2, 104)];
    expect(found({ entries, readings: late })).toEqual([[2, "not_charged"]]);
  });
});

it("P5, P20: one that seems to be sent years ahead is settled as any other", () => {
  const unknown = lost(2, 6, 2, { sentAt: start + years * minute });
  const entries = [entry(1, 2, 1), unknown];
  const readings = [reading(2, 10, 2.1, 104), reading(3, 11, 6, 104), reading(4, 12, 17, 104)];
  expect(found({ entries, readings })).toEqual([[2, "not_charged"]]);
});

describe.each([
  ["right", 0],
  ["ten years back until just before the baseline", -years],
])("an earlier request beside one without an answer, where the clock was %s", (_, by) => {
  // Both cost 4 credits. The second one is charged them after the baseline.
  const unknown = lost(2, 21, 11);
  const baseline = (used: number) => reading(1, 20, 10, used);
  const later = [reading(2, 25, 12, 104), reading(3, 26, 16, 104), reading(4, 27, 27, 104)];
  const at = (time: number) => start + (time + by) * minute;
  /** Nothing is proven of the later request: the earlier one's credits came back meanwhile, which hides its charge. */
  const expectHidden = (earlier: SpendLogEntry) =>
    expect(
      found({ baseline: baseline(104), entries: [earlier, unknown], readings: later }),
    ).not.toContainEqual([2, "not_charged"]);

  it("P2, P20: what a lost task gives back hides no charge", () => {
    expectHidden(lost(1, 2, 1, { endedAt: at(1), verdict: "charged", verdictSeq: 4 }));
  });

  it("P2, P20: an open task that nobody has looked at hides no charge", () => {
    expectHidden(
      entry(1, 2, 1, { endedAt: at(1), task: "open", taskEndedAt: null, polledSeq: 0, polledAt: null }),
    );
  });

  it("P2, P20: nor does one that was looked at last just then", () => {
    expectHidden(entry(1, 2, 1, { task: "open", taskEndedAt: null, polledSeq: 19, polledAt: at(9) }));
  });

  it("P2, P20: nor does a task that had failed just then, at a time that the service does not tell", () => {
    expectHidden(entry(1, 2, 1, { task: "failed", taskEndedAt: null, polledSeq: 19, polledAt: at(9) }));
  });

  it("P5, P20: a charge that comes late is not blamed on the later request", () => {
    const early = lost(1, 2, 9, { endedAt: at(9), verdict: "undecided" });
    const readings = later.slice(0, 1);
    expect(found({ baseline: baseline(100), entries: [early, unknown], readings })).toEqual([]);
  });
});

describe("a request of a process that is gone, of which nobody has said what became of it", () => {
  const gone = (at: number) =>
    lost(1, 2, at, { outcome: null, endedSeq: null, endedAt: null, polledSeq: 0, polledAt: null });
  const among = (earlier: SpendLogEntry) =>
    found({
      baseline: reading(1, 20, 10, 104),
      entries: [earlier, lost(2, 21, 11)],
      readings: [reading(2, 25, 12, 104), reading(3, 26, 16, 104), reading(4, 27, 27, 104)],
    });

  it("P2: may have given its credits back, which hides the charge of a later one", () => {
    expect(among(gone(1))).toEqual([[2, "undecided"]]);
  });

  it("P5: has done so within a day, as any other", () => {
    expect(among(gone(10 - day + 1))).toEqual([[2, "undecided"]]);
    expect(among(gone(10 - day))).toEqual([[2, "not_charged"]]);
  });
});
