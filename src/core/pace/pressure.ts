import { type Quota, slotsLeft, slotsWithin } from "../quota/quota.js";
import { ageWhen, type DurationEstimate } from "./pace.js";
import { leftMs, type OpenTask } from "./poll.js";

/**
 * How likely a result must be before it is polled for. While requests are plentiful, an early poll costs nothing; while
 * submits and polls compete for few slots, a poll that finds nothing delays the run. So the required chance follows how
 * many of the coming slots are needed, over the times within which the open tasks will need theirs. One time span for
 * all would not do: needs in ten minutes must not leave free slots unused now, but a full minute ahead must.
 */
export const pollProfiles = ["eager", "balanced", "frugal"] as const;
export type PollProfile = (typeof pollProfiles)[number];

interface Manner {
  /** The highest required chance for a model that always takes the same time. */
  most: number;
  /** How far ahead (ms) slots are reserved for polls: results are seen sooner, and the run takes a little longer. */
  holdMs: number;
}

const manners: Readonly<Record<PollProfile, Manner>> = {
  eager: { most: 0.87, holdMs: 20_000 },
  balanced: { most: 0.976, holdMs: 14_000 },
  frugal: { most: 0.99, holdMs: 0 },
};
/**
 * The required chance is lower for models with a wide spread, and far lower for the widest: their last few hundredths
 * would take very long.
 */
const perSpread = 0.028;
const perWideSpread = 0.08;
const wideSpread = 0.25;
/** It is also lower for long durations (per e-fold beyond 10 s), but not for long and widely spread ones. */
const perLength = 0.016;
const shortMs = 10_000;
const leastChance = 0.17;
/** The required chance while the day's requests do not suffice: each wasted one is one item less. */
const chanceOfShortDay = 0.99;
const horizonMsMin = 10_000;
/** Requests per item, including wasted polls, for the daily limit. */
const requestsEach = 2.02;

/** Planned items of one price group. */
export interface WaitingWork {
  group: string;
  items: number;
}

export interface Work {
  tasks: readonly OpenTask[];
  waiting: readonly WaitingWork[];
  pace(group: string): DurationEstimate;
  quota: Quota;
  now: number;
}

/** The day's requests do not suffice for what is planned and open. */
export function isDayShort({ tasks, waiting, quota }: Work): boolean {
  const items = waiting.reduce((sum, { items }) => sum + items, 0);
  return requestsEach * items + tasks.length + quota.owedElsewhere > slotsLeft(quota.day);
}

export interface Pressure extends Manner {
  isDayShort: boolean;
  /** Every slot is needed: polls that save no time can wait. */
  isShort: boolean;
  /** There are so many slots that even a poll with the least chance is worth one. */
  isPlenty: boolean;
}

/** The pressure on polls now. Unless --poll is given, the scarcest resource decides. */
export function pressureOf(work: Work, profile: PollProfile | null): Pressure {
  const manner = manners[profile ?? "balanced"];
  if (profile !== "eager" && isDayShort(work))
    return { ...manner, most: chanceOfShortDay, isDayShort: true, isShort: true, isPlenty: false };
  const needed = load(work);
  const most = Math.min(manner.most, Math.max(leastChance, needed));
  return { ...manner, most, isDayShort: false, isShort: needed >= 1, isPlenty: needed <= leastChance };
}

/** The chance of a poll for which nothing waits. */
const unhurriedChance = 0.95;

export function unhurried(pressure: Pressure): Pressure {
  return { ...pressure, most: Math.max(pressure.most, unhurriedChance) };
}

/** The chance at which a poll of a task with this pace is worth its request. */
export function certainty({ most, isDayShort }: Pressure, { mean, spread }: DurationEstimate): number {
  if (isDayShort) return most;
  const forLength = perLength * Math.max(0, mean - Math.log(shortMs)) * Math.max(0, 1 - spread);
  const forSpread = Math.max(perSpread * spread, perWideSpread * (spread - wideSpread));
  return Math.min(most, Math.max(0.85, most - forSpread - forLength));
}

/**
 * How many polls are needed per slot left by the submits, over all times within which some of the work is done: each poll
 * needs at least that chance, or slots run short. 1 or more means that they do.
 */
function load(work: Work): number {
  const { quota, now } = work;
  if (quota.minute.limit === null && quota.day.limit === null && quota.pacing.spacingMs === 0) return 0;
  const needs = needsOf(work).sort((a, b) => a.withinMs - b.withinMs);
  const slots = slotsWithin(
    quota,
    now,
    needs.map(({ withinMs }) => withinMs),
  );
  let [polls, submits, worst] = [0, 0, 0];
  for (const [index, need] of needs.entries()) {
    polls += need.polls;
    submits += need.submits;
    worst = Math.max(worst, polls / Math.max(0.5, (slots[index] ?? 0) - submits));
  }
  return worst;
}

interface Need {
  withinMs: number;
  polls: number;
  submits: number;
}

function needsOf({ tasks, waiting, pace, now }: Work): Need[] {
  const within = (ms: number) => Math.max(horizonMsMin, ms);
  return [
    ...tasks
      .filter(({ kind }) => kind !== "overdue")
      .map((task) => ({ withinMs: within(leftMs(task, pace(task.group), now)), polls: 1, submits: 0 })),
    ...waiting.map(({ group, items }) => ({
      withinMs: within(ageWhen(pace(group), 0.9, 0)),
      polls: items,
      submits: items,
    })),
  ];
}

/** The expected time (ms) of the slowest planned generation; unknown models are bounded. */
function slowestMs({ waiting, pace }: Work): number {
  const each = waiting.map(({ group }) => {
    const fit = pace(group);
    return Math.min(ageWhen(fit, 0.99, 0), 3 * Math.exp(fit.mean));
  });
  return Math.max(0, ...each);
}

/**
 * Whether the end is so near that every submit should go now: while the slowest generation runs, there are enough slots
 * to poll all the rest.
 */
export function isTail(work: Work): boolean {
  const items = work.waiting.reduce((sum, { items }) => sum + items, 0);
  if (items === 0) return false;
  const [slots = 0] = slotsWithin(work.quota, work.now, [slowestMs(work)]);
  return slots >= items + work.tasks.length;
}
