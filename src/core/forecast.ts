import type { PlanLimits } from "../api/plans.js";
import { lanesOf } from "./lanes.js";
import { ageWhen, type Pace } from "./pace.js";
import { dayMs, minuteMs } from "./quota.js";

/**
 * What a run will need, said beforehand: requests, time, and which limit it is that keeps it from being faster. It is
 * reckoned from the very paces and limits that the run then works with.
 */
export interface Forecast {
  requests: number;
  ms: number;
  binds: Binding;
  /** The same on the next larger plan, where that would be faster. */
  larger: { plan: string; ms: number } | null;
}

export type Binding = "minute" | "day" | "credits" | "generation";

export interface Outlook {
  /** What is to be made, by price group. */
  groups: readonly { items: number; pace: Pace }[];
  /** Tasks that are at the service already. */
  open: number;
  limits: PlanLimits;
  /** The plan by its name at the service. */
  plan: string;
  /** The day's requests that are used. */
  usedToday: number;
  /** The credits do not reach for all. */
  isShortOfCredits: boolean;
}

/** Requests that an item costs, by the bench: its submit, its look, and a few looks that find nothing. */
const requestsEach = 2.03;
/** What a place takes to come round, and a submit to be answered, in ms. */
const roundMs = minuteMs + 700;
const answerMs = 700;

/** What is to be expected; `larger` are the plans above with their limits, in order. */
export function forecastOf(
  outlook: Outlook,
  larger: readonly { plan: string; limits: PlanLimits }[] = [],
): Forecast {
  const own = reckon(outlook);
  const above = larger
    .map(({ plan, limits }) => ({ plan, ms: reckon({ ...outlook, plan, limits }).ms }))
    .find(({ ms }) => ms < 0.9 * own.ms);
  return { ...own, larger: above ?? null };
}

function reckon(outlook: Outlook): Omit<Forecast, "larger"> {
  const { groups, open, limits, usedToday } = outlook;
  const items = groups.reduce((sum, group) => sum + group.items, 0);
  const requests = Math.ceil(requestsEach * items + (requestsEach - 1) * open);
  if (requests === 0) return { requests, ms: 0, binds: "generation" };
  const minuteNeed = limits.perMinute === null ? 0 : Math.max(0, requests / limits.perMinute - 1) * roundMs;
  const dayNeed = limits.perDay === null ? 0 : daysFor(requests, usedToday, limits.perDay) * dayMs;
  const generationNeed = generationMs(outlook);
  const ms = Math.max(minuteNeed, dayNeed, generationNeed);
  const binds = outlook.isShortOfCredits ? "credits" : ms === dayNeed && dayNeed > 0 ? "day" : undefined;
  const unhurriedMs = generationMs({ ...outlook, limits: { ...limits, perMinute: null } });
  return { requests, ms: Math.round(ms), binds: binds ?? (unhurriedMs < 0.9 * ms ? "minute" : "generation") };
}

/** Days that pass before the last request has its place. */
function daysFor(requests: number, used: number, perDay: number): number {
  const beyondToday = requests - Math.max(0, perDay - used);
  return beyondToday <= 0 ? 0 : Math.ceil(beyondToday / perDay);
}

/** When the last generation ends if each begins as early as the limit lets it, the longest first. */
function generationMs({ groups, limits, plan }: Outlook): number {
  let [begun, ends] = [0, 0];
  for (const { items, pace } of groups.toSorted((a, b) => b.pace.mean - a.pace.mean)) {
    if (items === 0) continue;
    begun += items;
    const lanesMs = (begun * answerMs) / lanesOf(plan);
    const windowsMs = limits.perMinute === null ? 0 : Math.floor((begun - 1) / limits.perMinute) * roundMs;
    // So long does the slowest of them take, as likely as not.
    const slowestMs = ageWhen(pace, 0.5 ** (1 / items), 0);
    ends = Math.max(ends, Math.max(lanesMs, windowsMs) + slowestMs + answerMs);
  }
  return ends;
}
