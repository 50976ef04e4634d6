import { limitsOf, planLimits, plans } from "../api/plans.js";
import { type Forecast, forecastOf } from "../core/forecast.js";
import type { ItemState } from "../core/item.js";
import { guessOf, type Pace, paceOf } from "../core/pace.js";
import { priceGroup } from "../core/price.js";
import { narrowed } from "../core/quota.js";
import type { Existing, Fit, PlanInput, PlannedItem, Requests } from "./plan.js";

/** Tasks that the service has, or may have, and that will be looked at. */
const atService: readonly ItemState[] = ["submitting", "processing", "overdue"];

/** What a run will ask of the service, and how long that takes. */
export function requestsOf(
  items: readonly PlannedItem[],
  existing: readonly Existing[],
  fit: Fit,
  input: PlanInput,
): Requests {
  const { me, usedToday = 0, ownLimits = {} } = input;
  const due = items.filter((item) => item.due);
  const open = existing.filter((item) => atService.includes(item.state)).length;
  const plan = me.subscription?.plan ?? null;
  const { perMinute, perDay } = limitsOf(plan ?? "");
  const above = plans.slice((plans as readonly string[]).indexOf(plan ?? "") + 1);
  const forecast: Forecast = forecastOf(
    {
      groups: groupsOf(due, input),
      open,
      limits: narrowed({ perMinute, perDay }, ownLimits),
      plan: plan ?? "",
      usedToday,
      isShortOfCredits: fit.items < due.length,
    },
    above.map((name) => ({ plan: name, limits: narrowed(planLimits[name], ownLimits) })),
  );
  return { atLeast: 2 * due.length + open, plan, perMinute, perDay, forecast };
}

function groupsOf(due: readonly PlannedItem[], { pace }: PlanInput): { items: number; pace: Pace }[] {
  const groups = new Map<string, { items: number; pace: Pace }>();
  for (const item of due) {
    const name = priceGroup(item);
    const group = groups.get(name) ?? {
      items: 0,
      pace: pace?.(name) ?? paceOf(guessOf(item.category), [], []),
    };
    groups.set(name, group);
    group.items++;
  }
  return [...groups.values()];
}
