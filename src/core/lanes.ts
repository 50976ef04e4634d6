import type { Plan } from "../api/plans.js";

/** POSTs that may be in flight at once: more are faster, fewer leave less in doubt after a crash. */
const lanesByPlan: Readonly<Record<Plan, number>> = { Starter: 1, Pro: 2, Enterprise: 16 };

export function lanesOf(plan: string): number {
  return lanesByPlan[plan as Plan] ?? 1;
}
