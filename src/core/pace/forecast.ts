import type { PlanLimits } from "../../api/plans.js";
import { dayMs, lanesOf, minuteMs, type Quota, type Window } from "../quota/quota.js";
import { ageWhen, type DurationEstimate } from "./pace.js";
import { expectedPolls } from "./poll.js";
import { certainty, pressureOf } from "./pressure.js";

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
  /** Models that nothing was made with yet, where the time follows from how long they take; left out where there are none. */
  guessed?: Guessed;
}

export interface Guessed {
  models: string[];
  /** Nothing was made with any model of the run. */
  areAll: boolean;
}

export type Binding = "minute" | "day" | "credits" | "generation";

export interface Outlook {
  /** What is to be made, by price group. */
  groups: readonly { items: number; pace: DurationEstimate }[];
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

/**
 * Requests that an item costs where they are short, by the bench: its submit, its look, and a few looks that find
 * nothing. More are made only while there are places for them, so the time that a run takes follows from these.
 */
const requestsEach = 2.03;
/**
 * However many places there are, a look is on average no less likely to succeed than this, by the bench: what the first
 * ones find tells when to look at the others.
 */
const leastChance = 0.27;
/** The bench's models, of which nothing was known either, turned out to be no more spread than this. */
const spreadMost = 0.4;
/** What a place takes to come round, and a submit to be answered, in ms. */
const roundMs = minuteMs + 700;
const answerMs = 700;

/** What is to be expected; `larger` are the plans above with their limits, in order. */
export function forecastOf(
  outlook: Outlook,
  larger: readonly { plan: string; limits: PlanLimits }[] = [],
): Omit<Forecast, "guessed"> {
  const own = reckon(outlook);
  const above = larger
    .map(({ plan, limits }) => ({ plan, ms: reckon({ ...outlook, plan, limits }).ms }))
    .find(({ ms }) => ms < 0.9 * own.ms);
  return { ...own, larger: above ?? null };
}

function reckon(outlook: Outlook): Omit<Forecast, "larger" | "guessed"> {
  const { groups, open, limits, usedToday } = outlook;
  const items = groups.reduce((sum, group) => sum + group.items, 0);
  const needed = Math.ceil(requestsEach * items + (requestsEach - 1) * open);
  const requests = Math.max(needed, Math.ceil((requestsEach - 1) * open + expectedRequests(outlook)));
  if (requests === 0) return { requests, ms: 0, binds: "generation" };
  const minuteNeed = limits.perMinute === null ? 0 : Math.max(0, needed / limits.perMinute - 1) * roundMs;
  const dayNeed = limits.perDay === null ? 0 : daysFor(needed, usedToday, limits.perDay) * dayMs;
  const generationNeed = generationMs(outlook);
  const ms = Math.max(minuteNeed, dayNeed, generationNeed);
  const binds = outlook.isShortOfCredits ? "credits" : ms === dayNeed && dayNeed > 0 ? "day" : undefined;
  const unhurriedMs = generationMs({ ...outlook, limits: { ...limits, perMinute: null } });
  return { requests, ms: Math.round(ms), binds: binds ?? (unhurriedMs < 0.9 * ms ? "minute" : "generation") };
}

/** The submits, and the looks as the run will make them: a small set, for which there are places to spare, early. */
function expectedRequests({ groups, limits, usedToday }: Outlook): number {
  const named = new Map(groups.map(({ items, pace }, index) => [`${index}`, { items, pace: usual(pace) }]));
  const waiting = [...named].map(([group, { items }]) => ({ group, items }));
  const durationEstimateOf = (group: string) => (named.get(group) as { pace: DurationEstimate }).pace;
  const pressure = pressureOf(
    { tasks: [], waiting, pace: durationEstimateOf, quota: fresh(limits, usedToday), now: 0 },
    null,
  );
  const known = new Map<string, number>();
  let requests = 0;
  for (const { items, pace } of named.values()) {
    const key = `${pace.mean} ${pace.spread}`;
    const chance = Math.max(leastChance, certainty(pressure, pace));
    const looks = known.get(key) ?? expectedPolls(pace, chance);
    known.set(key, looks);
    requests += items * (1 + looks);
  }
  return requests;
}

function usual(pace: DurationEstimate): DurationEstimate {
  return { ...pace, spread: Math.min(spreadMost, pace.spread) };
}

/** The windows as a run finds them that begins at 0. */
function fresh({ perMinute, perDay }: PlanLimits, usedToday: number): Quota {
  const window = (limit: number | null, used: number): Window => ({
    limit,
    used,
    nextFreeAt: 0,
    nextReleaseAt: null,
  });
  return {
    minute: window(perMinute, 0),
    day: window(perDay, usedToday),
    releases: [],
    gait: { spacingMs: 0, nextAt: 0 },
    owedElsewhere: 0,
    blockedUntil: null,
  };
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
