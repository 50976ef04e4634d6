import { composedMax, isComposed } from "./composition.js";
import { foreignRequests } from "./foreign.js";
import {
  candidates,
  clarity,
  type Evidence,
  type Hypothesis,
  type Learned,
  lastServedAt,
  lostTasks,
  type Reading,
  residual,
} from "./readings.js";

/** What the readings since the baseline teach about a key's counters. */
export function learn(evidence: Evidence): Learned {
  const clear = evidence.readings.filter((reading) => clarity(evidence, reading) === "clear");
  const plain = clear.filter((reading) => candidates(evidence, reading).length === 0);
  const hypotheses = evidence.hypotheses.filter((hypothesis) =>
    plain.every((reading) => isExplained(evidence, reading, hypothesis)),
  );
  const matched = clear.some(
    (reading) =>
      isMoved(evidence, reading) &&
      hypotheses.every((hypothesis) => residual(evidence, reading, hypothesis) === 0),
  );
  return {
    hypotheses,
    trusted: hypotheses.length > 0 && (evidence.trusted || matched),
    foreignAt: isForeign(evidence) ? lastServedAt(evidence) : evidence.foreignAt,
  };
}

/** Nothing is left over, or just what lost tasks may have given back. */
function isExplained(evidence: Evidence, reading: Reading, hypothesis: Hypothesis): boolean {
  const rest = residual(evidence, reading, hypothesis);
  if (rest === 0 || hypothesis === "gross") return rest === 0;
  const lost = lostTasks(evidence, reading);
  return lost.length > composedMax || isComposed(rest, [], lost);
}

/** Whether a request of ours was charged between the baseline and the reading. */
function isMoved({ entries, baseline }: Evidence, reading: Reading): boolean {
  return entries.some((entry) => {
    const between = entry.intendedSeq > baseline.seq && entry.intendedSeq <= reading.seq;
    return between && entry.outcome === "accepted" && (entry.charged ?? 0) > 0;
  });
}

/** Between any two readings, more requests were counted than this machine can have sent. */
function isForeign({ baseline, readings }: Evidence): boolean {
  const looks = [baseline, ...readings];
  return looks.some((later, at) => looks.slice(0, at).some((earlier) => foreignRequests(earlier, later) > 0));
}
