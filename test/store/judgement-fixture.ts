import { nothingLearnedYet } from "../../src/core/charges/readings.js";
import type { Judgement } from "../../src/core/charges/verdict.js";

/** A judgement that says this of some entries, and nothing else. */
export function judgementOf(verdicts: Judgement["verdicts"]): Judgement {
  return { ...nothingLearnedYet, verdicts, baseline: null, unsettled: 0, nextReadingAt: null, awaited: [] };
}
