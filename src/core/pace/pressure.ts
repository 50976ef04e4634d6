import { type Quota, slotsLeft, slotsWithin } from "../quota/quota.js";
import { ageWhen, type DurationEstimate } from "./pace.js";
import { leftMs, type OpenTask } from "./poll.js";

/**
 * How sure one must be of a result before looking for it. While requests are plenty an early look costs nothing that
 * anybody misses; while submits and looks wait for the same few places, a look that finds nothing delays the run. So
 * the chance that is asked for follows how much of the coming places is needed, over the times within which the open
 * tasks will want theirs. One time for all would not do: what is needed in ten minutes must not keep today's empty
 * places from being used, and a full minute ahead must.
 */
export const pollProfiles = ["eager", "balanced", "frugal"] as const;
export type PollProfile = (typeof pollProfiles)[number];

interface Manner {
  /** The highest chance that is asked for of a model that always takes the same time. */
  most: number;
  /** How far ahead places are kept for looks, in ms: results are seen sooner, and the run takes a little longer. */
  holdMs: number;
}

const manners: Readonly<Record<PollProfile, Manner>> = {
  eager: { most: 0.87, holdMs: 20_000 },
  balanced: { most: 0.976, holdMs: 14_000 },
  frugal: { most: 0.99, holdMs: 0 },
};
/**
 * Less is asked of a model whose times are spread wide, and far less of the widest: the last few hundredths would take
 * it very long.
 */
const perSpread = 0.028;
const perWideSpread = 0.08;
const wideSpread = 0.25;
/** And of one that takes long (for each e-fold beyond 10 s), but not where long and spread wide come together. */
const perLength = 0.016;
const shortMs = 10_000;
const leastChance = 0.17;
/** Asked for while the day's requests do not suffice for all that is to do: each one wasted is an item less. */
const chanceOfShortDay = 0.99;
const horizonMsMin = 10_000;
/** Requests that an item costs, with the looks that find nothing, as far as the day is concerned. */
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
  /** Every place is wanted: what is looked at for no gain in time can wait. */
  isShort: boolean;
  /** There are so many places that even a look with the least chance is worth one. */
  isPlenty: boolean;
}

/** What looks must be worth now. Unless somebody wants it otherwise, what is short decides. */
export function pressureOf(work: Work, profile: PollProfile | null): Pressure {
  const manner = manners[profile ?? "balanced"];
  if (profile !== "eager" && isDayShort(work))
    return { ...manner, most: chanceOfShortDay, isDayShort: true, isShort: true, isPlenty: false };
  const needed = load(work);
  const most = Math.min(manner.most, Math.max(leastChance, needed));
  return { ...manner, most, isDayShort: false, isShort: needed >= 1, isPlenty: needed <= leastChance };
}

/** The chance at which a look at a task of this pace is worth its request. */
export function certainty({ most, isDayShort }: Pressure, { mean, spread }: DurationEstimate): number {
  if (isDayShort) return most;
  const forLength = perLength * Math.max(0, mean - Math.log(shortMs)) * Math.max(0, 1 - spread);
  const forSpread = Math.max(perSpread * spread, perWideSpread * (spread - wideSpread));
  return Math.min(most, Math.max(0.85, most - forSpread - forLength));
}

/**
 * How many looks there must be for each place that the submits leave, over all times within which some of the work is
 * done: so much of a chance each look must have, or places run short. At least 1 means that they do.
 */
function load(work: Work): number {
  const { quota, now } = work;
  if (quota.minute.limit === null && quota.day.limit === null && quota.gait.spacingMs === 0) return 0;
  const needs = needsOf(work).sort((a, b) => a.withinMs - b.withinMs);
  const places = slotsWithin(
    quota,
    now,
    needs.map(({ withinMs }) => withinMs),
  );
  let [looks, submits, worst] = [0, 0, 0];
  for (const [index, need] of needs.entries()) {
    looks += need.looks;
    submits += need.submits;
    // Needs of the same time count together.
    if (needs[index + 1]?.withinMs === need.withinMs) continue;
    worst = Math.max(worst, looks / Math.max(0.5, (places[index] ?? 0) - submits));
  }
  return worst;
}

interface Need {
  withinMs: number;
  looks: number;
  submits: number;
}

function needsOf({ tasks, waiting, pace, now }: Work): Need[] {
  const within = (ms: number) => Math.max(horizonMsMin, ms);
  return [
    ...tasks
      .filter(({ kind }) => kind !== "overdue")
      .map((task) => ({ withinMs: within(leftMs(task, pace(task.group), now)), looks: 1, submits: 0 })),
    ...waiting.map(({ group, items }) => ({
      withinMs: within(ageWhen(pace(group), 0.9, 0)),
      looks: items,
      submits: items,
    })),
  ];
}

/** How long the slowest of the planned generations is to be waited for, in ms: an unknown model is not believed to take for ever. */
function slowestMs({ waiting, pace }: Work): number {
  const each = waiting.map(({ group }) => {
    const fit = pace(group);
    return Math.min(ageWhen(fit, 0.99, 0), 3 * Math.exp(fit.mean));
  });
  return Math.max(0, ...each);
}

/**
 * Whether the end is so near that every submit should go now: while the slowest of them is at work, there are places
 * enough to look for all the rest.
 */
export function isTail(work: Work): boolean {
  const items = work.waiting.reduce((sum, { items }) => sum + items, 0);
  if (items === 0) return false;
  const [places = 0] = slotsWithin(work.quota, work.now, [slowestMs(work)]);
  return places >= items + work.tasks.length;
}
