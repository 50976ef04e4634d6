import {
  type Counting,
  candidates,
  clarity,
  type Entry,
  type Evidence,
  type Learned,
  type Reading,
  residual,
} from "./readings.js";

/** What the readings since the baseline teach about a key's counters. */
export function learn(evidence: Evidence, unknowns: readonly Entry[]): Learned {
  const clear = evidence.readings.filter((reading) => clarity(evidence, reading) === "clear");
  const plain = clear.filter((reading) => candidates(evidence, reading).length === 0);
  const hypotheses = evidence.hypotheses.filter((hypothesis) =>
    plain.every((reading) => residual(evidence, reading, hypothesis) === 0),
  );
  const matched = clear.some(
    (reading) =>
      isMoved(evidence, reading) &&
      hypotheses.every((hypothesis) => residual(evidence, reading, hypothesis) === 0),
  );
  const strange = evidence.readings.some((reading) => isForeign(evidence.baseline, reading));
  return {
    hypotheses,
    trusted: hypotheses.length > 0 && (evidence.trusted || matched),
    counting: counting(evidence, unknowns),
    foreignAt: strange ? evidence.now : evidence.foreignAt,
  };
}

/** Whether a request of ours was charged between the baseline and the reading. */
function isMoved({ entries, baseline }: Evidence, reading: Reading): boolean {
  return entries.some((entry) => {
    const between = entry.intendedSeq > baseline.seq && entry.intendedSeq <= reading.seq;
    return between && entry.outcome === "accepted" && (entry.charged ?? 0) > 0;
  });
}

/** More requests were counted than this machine can have sent. */
function isForeign(baseline: Reading, reading: Reading): boolean {
  return reading.requests - baseline.requests > reading.sent - baseline.answered;
}

/** Whether the counter of requests moves by exactly the requests that were answered, judged where none was lost. */
function counting({ baseline, readings, counting }: Evidence, unknowns: readonly Entry[]): Counting {
  if (counting === "inexact" || unknowns.length > 0) return counting;
  const lost = (reading: Reading) => reading.sent - reading.answered;
  const moved = readings.filter(
    (reading) => lost(reading) === lost(baseline) && reading.answered > baseline.answered + 1,
  );
  if (moved.length === 0) return counting;
  const exact = moved.every(
    (reading) => reading.requests - baseline.requests === reading.answered - baseline.answered,
  );
  return exact ? "exact" : "inexact";
}
