import type { AnnouncedProvider } from "../../api/announced.js";
import type { PlanLimits } from "../../api/plans.js";
import { dayMs, lanesOf, minuteMs, type Quota, type Window } from "../quota/quota.js";
import { ageWhen, type DurationEstimate } from "./pace.js";
import { expectedPolls } from "./poll.js";
import { certainty, pressureOf } from "./pressure.js";

/**
 * Forecasts what a run will need: requests, time, and the limit that binds. It uses the same duration estimates and
 * limits as the run itself.
 */
export interface Forecast {
  requests: number;
  ms: number;
  binds: Binding;
  /** The forecast for the next larger plan, if that would be faster. */
  larger: { plan: string; ms: number } | null;
  /** Models without history, if the time depends on how long they take; absent if there are none. */
  guessed?: Guessed;
}

export interface Guessed {
  models: string[];
  /** No model of the run has a history. */
  areAll: boolean;
  /** The run is on the sandbox, whose generations take seconds. */
  sandbox: boolean;
}

export const bindings = ["minute", "day", "credits", "generation", "provider"] as const;
export type Binding = (typeof bindings)[number];

/** Generations of one kind that are still to be done. */
export interface ModelWork {
  model: string;
  items: number;
  pace: DurationEstimate;
}

export interface Outlook {
  /** Items to make, by price group. */
  groups: readonly ModelWork[];
  /** Who does the jobs, if the service says so. */
  providers?: readonly AnnouncedProvider[];
  /** Tasks already at the service. */
  open: number;
  limits: PlanLimits;
  /** The plan by its name at the service. */
  plan: string;
  /** Submits in flight at once, if the user has set it; otherwise the plan decides. */
  lanes?: number;
  /** Requests already used of the day. */
  usedToday: number;
  /** Requests that occupy the minute now. */
  usedNow: number;
  /** The credits do not cover all items. */
  isShortOfCredits: boolean;
  /** How long the generations of the longest chain take one after the other, in ms; 0 without chains. */
  chainMs: number;
}

/**
 * Requests per item when they are short, measured by the bench: its submit, its poll, and a few polls that find it
 * unfinished. More are made only while slots are free, so this figure determines the time of a run.
 */
const requestsEach = 2.03;
/**
 * The least average chance of a poll to succeed, however many slots there are, measured by the bench: the first results
 * show when to poll the others.
 */
const leastChance = 0.27;
/** The largest spread among the bench's models, which had no history either. */
const spreadMost = 0.4;
/** Milliseconds until a used slot is free again, and until a submit is answered. */
const roundMs = minuteMs + 700;
const answerMs = 700;

/** The forecast; `larger` are the plans above with their limits, in order. */
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
  const { groups, open, limits, usedToday, usedNow } = outlook;
  const items = groups.reduce((sum, group) => sum + group.items, 0);
  const needed = Math.ceil(requestsEach * items + (requestsEach - 1) * open);
  const requests = Math.max(needed, Math.ceil((requestsEach - 1) * open + expectedRequests(outlook)));
  if (requests === 0) return { requests, ms: 0, binds: "generation" };
  const minuteNeed = limits.perMinute === null ? 0 : minutesMs(needed + usedNow, outlook, limits.perMinute);
  const dayNeed = limits.perDay === null ? 0 : daysFor(needed, usedToday, limits.perDay) * dayMs;
  const generationNeed = generationMs(outlook);
  const providerNeed = Math.max(
    0,
    ...(outlook.providers ?? []).map((provider) => workMs(provider, groups, provider.aheadMs ?? 0)),
  );
  const ms = Math.max(minuteNeed, dayNeed, generationNeed, providerNeed);
  const binds = outlook.isShortOfCredits
    ? "credits"
    : ms === dayNeed && dayNeed > 0
      ? "day"
      : providerNeed > Math.max(minuteNeed, generationNeed)
        ? "provider"
        : undefined;
  const unhurriedMs = generationMs({ ...outlook, limits: { ...limits, perMinute: null } });
  return { requests, ms: Math.round(ms), binds: binds ?? (unhurriedMs < 0.9 * ms ? "minute" : "generation") };
}

/** The submits and polls that the run will make: a small set, with slots to spare, polls early. */
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
    const polls = known.get(key) ?? expectedPolls(pace, chance);
    known.set(key, polls);
    requests += items * (1 + polls);
  }
  return requests;
}

function usual(pace: DurationEstimate): DurationEstimate {
  return { ...pace, spread: Math.min(spreadMost, pace.spread) };
}

/** The windows at the start of a run at time 0. */
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
    pacing: { spacingMs: 0, nextAt: 0 },
    owedElsewhere: 0,
    blockedUntil: null,
  };
}

/**
 * When the last of so many requests is answered: a full minute's requests leave as fast as the lanes allow, and each slot
 * is free again a whole minute after its answer. So the number of minutes is whole, however few requests the last one has.
 */
function minutesMs(requests: number, { lanes, plan }: Outlook, perMinute: number): number {
  if (requests <= perMinute) return 0;
  const last = requests - 1;
  const withinMs = (last % perMinute) * (answerMs / (lanes ?? lanesOf(plan)));
  return Math.floor(last / perMinute) * roundMs + withinMs + answerMs;
}

/** Days until the last request gets a slot. */
function daysFor(requests: number, used: number, perDay: number): number {
  const beyondToday = requests - Math.max(0, perDay - used);
  return beyondToday <= 0 ? 0 : Math.ceil(beyondToday / perDay);
}

/**
 * When the last generation ends if each starts as early as the limit allows, the longest first; but no sooner than the
 * longest chain.
 */
function generationMs({ groups, limits, plan, lanes, usedNow, chainMs }: Outlook): number {
  let [begun, ends] = [0, chainMs];
  for (const { items, pace } of groups.toSorted((a, b) => b.pace.mean - a.pace.mean)) {
    if (items === 0) continue;
    begun += items;
    const lanesMs = (begun * answerMs) / (lanes ?? lanesOf(plan));
    const windowsMs =
      limits.perMinute === null ? 0 : Math.floor((begun - 1 + usedNow) / limits.perMinute) * roundMs;
    // The median time of the slowest of them. How little is known of the model is the same for all, so it spreads none.
    const slowestMs = ageWhen(usual(pace), 0.5 ** (1 / items), 0);
    ends = Math.max(ends, Math.max(lanesMs, windowsMs) + slowestMs + answerMs);
  }
  return ends;
}

/** When a provider has done this and what is before it; 0 if none of it is the provider's. */
export function workMs(
  { atOnce, usualMs }: AnnouncedProvider,
  groups: readonly ModelWork[],
  aheadMs: number,
): number {
  const own = groups.filter(({ model, items }) => items > 0 && usualMs.has(model));
  const items = own.reduce((sum, group) => sum + group.items, 0);
  if (items === 0) return 0;
  const whole = own.reduce((sum, group) => sum + group.items * meanMs(group.pace), 0);
  // As many rounds as the places need, each as long as a job takes on average.
  return aheadMs + (Math.ceil(items / atOnce) * whole) / items;
}

/** The average time of a generation, which a few that take far longer make longer than the median. */
function meanMs(pace: DurationEstimate): number {
  const { mean, spread } = usual(pace);
  return Math.exp(mean + spread ** 2 / 2);
}
