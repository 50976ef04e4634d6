import type { PlanName } from "../../api/plans.js";

/** POSTs that may be in flight at once: more are faster, fewer leave less in doubt after a crash. */
const lanesByPlan: Readonly<Record<PlanName, number>> = { Starter: 1, Pro: 2, Enterprise: 16 };

export function lanesOf(plan: string): number {
  return lanesByPlan[plan as PlanName] ?? 1;
}

/**
 * The port to an account's lanes, which all processes on this machine share. A lane is held from before the intent
 * until the answer is on record, and falls with its process: so whatever happens, no more POSTs than lanes are left
 * without an answer.
 */
export interface Lanes {
  /** A free lane, or null when as many are taken, here or elsewhere. */
  take(): Lane | null;
  /** Holds back every lane that uses the same key, here and elsewhere; null while one of them is taken. */
  bracket(): Lane | null;
}

export interface Lane {
  release(): void;
}
