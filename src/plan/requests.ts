import { limitsOf, planLimits, plans } from "../api/plans.js";
import { type Forecast, forecastOf } from "../core/pace/forecast.js";
import { guessOf, type Pace, paceOf } from "../core/pace/pace.js";
import { narrowed } from "../core/quota/quota.js";
import type { Sum } from "./cost.js";
import type { PlanInput, Requests } from "./plan.js";

export interface Asked {
  /** What is to be made, by price group. */
  sums: readonly Sum[];
  /** Tasks that the service has, or may have, and that will be looked at. */
  open: number;
  isShortOfCredits: boolean;
}

/** What a run will ask of the service, and how long that takes. */
export function requestsOf({ sums, open, isShortOfCredits }: Asked, input: PlanInput): Requests {
  const { me, usedToday = 0, ownLimits = {} } = input;
  const due = sums.reduce((sum, group) => sum + group.due, 0);
  const plan = me.subscription?.plan ?? null;
  const { perMinute, perDay } = limitsOf(plan ?? "");
  const above = plans.slice((plans as readonly string[]).indexOf(plan ?? "") + 1);
  const groups = sums
    .filter((group) => group.due > 0)
    .map((group) => ({ model: group.model, items: group.due, pace: paceFor(group, input) }));
  const reckoned = forecastOf(
    {
      groups,
      open,
      limits: narrowed({ perMinute, perDay }, ownLimits),
      plan: plan ?? "",
      usedToday,
      isShortOfCredits,
    },
    above.map((name) => ({ plan: name, limits: narrowed(planLimits[name], ownLimits) })),
  );
  const unseen = new Set(groups.filter(({ pace }) => pace.finished === 0).map(({ model }) => model));
  const guessed = { models: [...unseen], areAll: groups.every(({ model }) => unseen.has(model)) };
  const isGuess = reckoned.binds === "generation" && unseen.size > 0;
  const forecast: Forecast = { ...reckoned, ...(isGuess ? { guessed } : {}) };
  const finishAt = forecast.requests === 0 ? null : input.now + forecast.ms;
  return { atLeast: 2 * due + open, plan, perMinute, perDay, forecast, finishAt };
}

function paceFor({ name, category }: Sum, { pace }: PlanInput): Pace {
  return pace?.(name) ?? paceOf(guessOf(category), [], []);
}
