import { type PlanName, planLimits } from "../../../src/api/plans.js";
import { type Forecast, forecastOf } from "../../../src/core/pace/forecast.js";
import { DurationEstimates } from "../../../src/core/pace/pace.js";
import type { Job } from "./mixes.js";
import { learn } from "./ours.js";

/** What the program would say of a set before its run, when it knows the generations of earlier runs. */
export function foresee(jobs: readonly Job[], plan: PlanName, history: readonly Job[] = []): Forecast {
  const paces = new DurationEstimates();
  learn(paces, history);
  const items = new Map<string, number>();
  for (const { model, category } of jobs) {
    paces.register(model, model, category);
    items.set(model, (items.get(model) ?? 0) + 1);
  }
  return forecastOf({
    groups: [...items].map(([model, count]) => ({ model, items: count, pace: paces.of(model) })),
    open: 0,
    limits: planLimits[plan],
    plan,
    usedToday: 0,
    usedNow: 0,
    isShortOfCredits: false,
    chainMs: 0,
  });
}
