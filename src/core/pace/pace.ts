import type { AnnouncedProvider } from "../../api/announced.js";

/**
 * How long generations of one kind take. Their logarithms are modelled as normal, which fits durations with a typical
 * value and occasional far longer ones. The spread is the predictive one: it includes the uncertainty about the model,
 * which is large at first.
 */
export interface DurationEstimate {
  /** Of the natural logarithm of milliseconds. */
  mean: number;
  spread: number;
  /** The number of finished generations behind it. */
  finished: number;
}

/** The prior of a fit: mean and spread, and how many generations each of them is worth. */
export interface PriorEstimate {
  mean: number;
  meanWeight: number;
  spread: number;
  spreadWeight: number;
}

/** Milliseconds of a generation if only its category is known. */
const usualMs: ReadonlyMap<string, number> = new Map([
  ["image", 10_000],
  ["audio", 20_000],
  ["video", 120_000],
]);
const usualMsOfOthers = 30_000;

export function priorOf(category: string): PriorEstimate {
  return {
    mean: Math.log(usualMs.get(category) ?? usualMsOfOthers),
    meanWeight: 0.25,
    spread: 0.4,
    spreadWeight: 4,
  };
}

/** The prior of a model if the service says how long its generations took lately: as much as a few that were seen. */
function priorAsTold(category: string, usualMs: number): PriorEstimate {
  return { ...priorOf(category), mean: Math.log(usualMs), meanWeight: 4 };
}

/** A model's fit as the prior for one of its price groups, whose params may change the duration. */
export function priorFrom(model: DurationEstimate): PriorEstimate {
  return {
    mean: model.mean,
    meanWeight: Math.min(model.finished, 4) + 0.25,
    spread: model.spread,
    spreadWeight: 4,
  };
}

/** Number of newer observations after which one counts half. */
const halfLife = 30;
/** Number of observations kept; older ones count next to nothing. */
export const observationsMax = 200;

/**
 * The duration estimate from finished generations (ms, newest last) and from the ages (ms) at which others were found
 * unfinished: those count with their expected duration, given that they have lasted so long.
 */
export function durationEstimateOf(
  prior: PriorEstimate,
  finishedMs: readonly number[],
  unfinishedMs: readonly number[],
): DurationEstimate {
  const values = sinceChange(finishedMs.slice(-observationsMax).map(Math.log));
  const ages = unfinishedMs.map((ms) => Math.log(Math.max(1, ms)));
  let fit = fitOf(prior, values, []);
  for (let round = 0; round < (ages.length === 0 ? 0 : 3); round++) {
    fit = fitOf(
      prior,
      values,
      ages.map((age) => expected(fit, age)),
    );
  }
  return { mean: fit.mean, spread: fit.spread * Math.sqrt(1 + 1 / fit.weight), finished: finishedMs.length };
}

interface Fit {
  mean: number;
  spread: number;
  weight: number;
}

/** A known value, or an expected value with its variance. */
interface Expected {
  value: number;
  variance: number;
}

function fitOf(prior: PriorEstimate, values: readonly number[], open: readonly Expected[]): Fit {
  let weight = prior.meanWeight;
  let sum = prior.mean * prior.meanWeight;
  const add = (value: number, times: number) => {
    weight += times;
    sum += value * times;
  };
  const timesOf = (index: number) => 2 ** ((index + 1 - values.length) / halfLife);
  for (const [index, value] of values.entries()) add(value, timesOf(index));
  for (const { value } of open) add(value, 1);
  const mean = sum / weight;
  let squares = prior.spread ** 2 * prior.spreadWeight;
  for (const [index, value] of values.entries()) squares += (value - mean) ** 2 * timesOf(index);
  for (const { value, variance } of open) squares += (value - mean) ** 2 + variance;
  const spread = Math.sqrt(squares / (weight - prior.meanWeight + prior.spreadWeight));
  return { mean, spread, weight };
}

/** The expected value for a generation that has lasted to this age. */
function expected({ mean, spread }: Fit, age: number): Expected {
  const z = (age - mean) / spread;
  const beyond = hazard(z);
  return {
    value: Math.max(age, mean + spread * beyond),
    variance: Math.max(0, spread ** 2 * (1 + z * beyond - beyond ** 2)),
  };
}

/** The least number of generations that show a change of pace, and how many standard errors it must be. */
const changeMin = 6;
const changeErrors = 4.5;
/** A smaller difference than this (as a logarithm) is no sign of a change, however small the variance. */
const spreadMin = 0.1;

/** The values since the last change of pace: from the point where before and after differ most. */
function sinceChange(values: readonly number[]): readonly number[] {
  const all = totals(values);
  let [place, farthest] = [0, changeErrors];
  let before = { count: 0, sum: 0, squares: 0 };
  for (const [index, value] of values.entries()) {
    before = plus(before, value);
    const after = {
      count: all.count - before.count,
      sum: all.sum - before.sum,
      squares: all.squares - before.squares,
    };
    if (before.count < changeMin || after.count < changeMin) continue;
    const variance = (deviation(before) + deviation(after)) / (all.count - 2) + spreadMin ** 2;
    const error = Math.sqrt(variance * (1 / before.count + 1 / after.count));
    const distance = Math.abs(after.sum / after.count - before.sum / before.count) / error;
    if (distance > farthest) [place, farthest] = [index + 1, distance];
  }
  return values.slice(place);
}

interface Totals {
  count: number;
  sum: number;
  squares: number;
}

function totals(values: readonly number[]): Totals {
  return values.reduce(plus, { count: 0, sum: 0, squares: 0 });
}

function plus({ count, sum, squares }: Totals, value: number): Totals {
  return { count: count + 1, sum: sum + value, squares: squares + value ** 2 };
}

function deviation({ count, sum, squares }: Totals): number {
  return Math.max(0, squares - sum ** 2 / count);
}

/** The share of generations that last longer than `ms`. */
export function survival({ mean, spread }: DurationEstimate, ms: number): number {
  return ms <= 0 ? 1 : upperTail((Math.log(ms) - mean) / spread);
}

/** The chance that one is finished at age `ms`, when it was not at age `seenMs`. */
export function chanceDone(pace: DurationEstimate, ms: number, seenMs: number): number {
  return ms <= seenMs ? 0 : 1 - survival(pace, ms) / survival(pace, seenMs);
}

/** The age (ms) at which one that was unfinished at age `seenMs` is finished with the chance `p`. */
export function ageWhen(pace: DurationEstimate, p: number, seenMs: number): number {
  const { mean, spread } = pace;
  return Math.max(seenMs, Math.exp(mean + spread * tailPoint((1 - p) * survival(pace, seenMs))));
}

/** What this machine saw of a task, by its own clock (UTC ms). */
export interface Witnessed {
  sentAt: number;
  /** The last time it was found unfinished, if ever. */
  unfinishedAt: number | null;
  /** When it was first seen finished. */
  seenAt: number;
}

/** How far (ms) the service's times may deviate from what was seen: answers take a while to arrive. */
const toleranceMs = 5_000;

/**
 * How long a task took, in ms: by the service's times, which are exact however late it was polled; if they are missing
 * or contradict what was seen (it cannot have taken longer than since its sending), by what was seen. Null if a changed
 * clock makes that nonsense too.
 */
export function durationOf(
  task: { createdAt: string; completedAt: string | null },
  { sentAt, unfinishedAt, seenAt }: Witnessed,
): number | null {
  const least = unfinishedAt === null ? 0 : unfinishedAt - sentAt;
  const most = seenAt - sentAt;
  if (most <= 0 || least < 0 || least > most) return null;
  const own = Date.parse(task.completedAt ?? "") - Date.parse(task.createdAt);
  if (own >= least - toleranceMs && own <= most + toleranceMs) return Math.max(1, own);
  return Math.max(1, (least + most) / 2);
}

/** The normal distribution, as exact in its far tail as in the middle, because long-running tasks are there. */

/** Beyond this many standard deviations a tail is indistinguishable from zero. */
const zMax = 30;

/** The share of a standard normal that lies above `z`; the relative error is below 2e-7. */
export function upperTail(z: number): number {
  if (z < 0) return 1 - upperTail(-z);
  const x = Math.min(z, zMax) / Math.SQRT2;
  const t = 1 / (1 + x / 2);
  const series = [
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196,
    1.00002368, -1.26551223,
  ].reduce((sum, coefficient) => sum * t + coefficient);
  return (t / 2) * Math.exp(series - x * x);
}

/** The value with the share `p` of a standard normal above it: the inverse of `upperTail`. */
export function tailPoint(p: number): number {
  if (p > 0.5) return -tailPoint(1 - p);
  if (p < upperTail(zMax)) return zMax;
  const t = Math.sqrt(-2 * Math.log(p));
  const guess =
    t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  // One Newton step on the logarithm of the tail improves the estimate from three digits to six.
  const tail = upperTail(guess);
  return guess + Math.log(tail / p) * (tail / density(guess));
}

/** The hazard at `z`: density divided by the remaining tail. */
export function hazard(z: number): number {
  return density(Math.min(z, zMax)) / upperTail(z);
}

function density(z: number): number {
  return Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
}

/**
 * A run's duration estimates, from the finished generations of each price group, including earlier runs, and the ages at
 * which open tasks were last found unfinished. A group without history uses its model's estimate, and a model what
 * the service tells of it, else its category's.
 */
export class DurationEstimates {
  private readonly models = new Map<string, Model>();
  private readonly modelOf = new Map<string, Model>();

  constructor(private readonly providers: readonly AnnouncedProvider[] = []) {}

  /** Registers the model and category of a price group. */
  register(group: string, model: string, category: string): void {
    if (this.modelOf.has(group)) return;
    const told = this.providers.map(({ usualMs }) => usualMs.get(model)).find((ms) => ms != null) ?? null;
    const known = this.models.get(model) ?? {
      told: told === null ? 0 : 1,
      prior: told === null ? priorOf(category) : priorAsTold(category, told),
      all: new Durations(),
      groups: new Map(),
    };
    this.models.set(model, known);
    known.groups.set(group, new Durations());
    this.modelOf.set(group, known);
  }

  /** Adds the duration of a generation, from creation to completion. */
  finished(group: string, item: number, ms: number): void {
    for (const durations of this.both(group)) durations.finished(item, ms);
  }

  /** Notes that a task was unfinished at this age. */
  unfinished(group: string, item: number, ageMs: number): void {
    for (const durations of this.both(group)) durations.unfinished(item, ageMs);
  }

  /** Removes a task that ended, or is no longer polled, without a known duration. */
  forget(group: string, item: number): void {
    for (const durations of this.both(group)) durations.forget(item);
  }

  of(group: string): DurationEstimate {
    const model = this.modelOf.get(group);
    const own = model?.groups.get(group);
    if (!model || !own) return nothingKnown;
    const whole = model.all.pace(model.prior);
    const pace = model.groups.size === 1 ? whole : own.pace(priorFrom(whole));
    return { ...pace, finished: Math.max(pace.finished, whole.finished, model.told) };
  }

  private both(group: string): Durations[] {
    const model = this.modelOf.get(group);
    const own = model?.groups.get(group);
    return model && own ? [model.all, own] : [];
  }
}

const nothingKnown = durationEstimateOf(priorOf(""), [], []);

interface Model {
  /** 1 if the service says how long its generations take, which counts as one that has finished. */
  told: 0 | 1;
  prior: PriorEstimate;
  all: Durations;
  groups: Map<string, Durations>;
}

/** Durations of one kind, and their fit, cached until they change. */
class Durations {
  private readonly done: number[] = [];
  private readonly open = new Map<number, number>();
  private fit: { pace: DurationEstimate; prior: PriorEstimate } | null = null;

  finished(item: number, ms: number): void {
    this.open.delete(item);
    this.done.push(ms);
    if (this.done.length > observationsMax) this.done.shift();
    this.fit = null;
  }

  unfinished(item: number, ageMs: number): void {
    this.open.set(item, ageMs);
    this.fit = null;
  }

  forget(item: number): void {
    if (this.open.delete(item)) this.fit = null;
  }

  pace(prior: PriorEstimate): DurationEstimate {
    const same =
      this.fit !== null && this.fit.prior.mean === prior.mean && this.fit.prior.spread === prior.spread;
    if (!same) this.fit = { pace: durationEstimateOf(prior, this.done, [...this.open.values()]), prior };
    return (this.fit as { pace: DurationEstimate }).pace;
  }
}
