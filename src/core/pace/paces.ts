import {
  type DurationEstimate,
  durationEstimateOf,
  observationsMax,
  type PriorEstimate,
  priorFrom,
  priorOf,
} from "./pace.js";

/**
 * What a run knows of how long generations take: the finished ones of each price group, those that earlier runs saw
 * included, and the ages at which open tasks were last found unfinished. A group whose params nothing is known of is
 * guessed from its model, and a model from its category.
 */
export class DurationEstimates {
  private readonly models = new Map<string, Model>();
  private readonly modelOf = new Map<string, Model>();

  /** A price group may come up: which model and category it is of. */
  introduce(group: string, model: string, category: string): void {
    if (this.modelOf.has(group)) return;
    const known = this.models.get(model) ?? {
      guess: priorOf(category),
      all: new Durations(),
      groups: new Map(),
    };
    this.models.set(model, known);
    known.groups.set(group, new Durations());
    this.modelOf.set(group, known);
  }

  /** A generation of the group took so long, from its creation to its completion. */
  finished(group: string, item: number, ms: number): void {
    for (const durations of this.both(group)) durations.finished(item, ms);
  }

  /** A task was not finished at this age. */
  unfinished(group: string, item: number, ageMs: number): void {
    for (const durations of this.both(group)) durations.unfinished(item, ageMs);
  }

  /** A task is over, or not looked at any more, and told nothing of how long it takes. */
  gone(group: string, item: number): void {
    for (const durations of this.both(group)) durations.gone(item);
  }

  of(group: string): DurationEstimate {
    const model = this.modelOf.get(group);
    const own = model?.groups.get(group);
    if (!model || !own) return nothingKnown;
    if (model.groups.size === 1) return own.pace(model.guess);
    const whole = model.all.pace(model.guess);
    const pace = own.pace(priorFrom(whole));
    return { ...pace, finished: Math.max(pace.finished, whole.finished) };
  }

  private both(group: string): Durations[] {
    const model = this.modelOf.get(group);
    const own = model?.groups.get(group);
    return model && own ? [model.all, own] : [];
  }
}

const nothingKnown = durationEstimateOf(priorOf(""), [], []);

interface Model {
  guess: PriorEstimate;
  all: Durations;
  groups: Map<string, Durations>;
}

/** Durations of one kind, and the fit to them until they change. */
class Durations {
  private readonly done: number[] = [];
  private readonly open = new Map<number, number>();
  private fit: { pace: DurationEstimate; guess: PriorEstimate } | null = null;

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

  gone(item: number): void {
    if (this.open.delete(item)) this.fit = null;
  }

  pace(guess: PriorEstimate): DurationEstimate {
    const same =
      this.fit !== null && this.fit.guess.mean === guess.mean && this.fit.guess.spread === guess.spread;
    if (!same) this.fit = { pace: durationEstimateOf(guess, this.done, [...this.open.values()]), guess };
    return (this.fit as { pace: DurationEstimate }).pace;
  }
}
