import { type PlanName, planLimits } from "../../../src/api/plans.js";
import { type Chance, chance } from "../../sim/chance.js";
import { type Job, responseMs } from "./mixes.js";

/** What became of one item, in ms of virtual time. */
export interface Course {
  acceptedAt: number;
  /** When the service had finished it. */
  doneAt: number;
  /** When the runner saw that; null while it has not. */
  seenAt: number | null;
}

/** The service as a clock: when tasks are made, when they are done, how long its answers take. */
export class TimedService {
  readonly courses = new Map<number, Course>();
  requests = 0;
  refused = 0;
  private readonly lot: Chance;
  private readonly half: number;

  constructor(
    readonly jobs: readonly Job[],
    seed: number,
    private readonly paceAfterHalf: number = 1,
  ) {
    this.lot = chance(seed, "service");
    this.half = jobs.length / 2;
  }

  /** How long a request that leaves now is under way: when it arrives and when it is answered. */
  travel(now: number): { arrivesAt: number; answeredAt: number } {
    const ms = responseMs(this.lot);
    return { arrivesAt: now + ms / 2, answeredAt: now + ms };
  }

  /** A task is made, on arrival. */
  create(index: number, now: number): void {
    const job = this.jobs[index] as Job;
    const factor = this.courses.size >= this.half ? this.paceAfterHalf : 1;
    this.courses.set(index, { acceptedAt: now, doneAt: now + job.durationMs * factor, seenAt: null });
  }

  /** A task is looked at, on arrival: whether it is done. */
  isDone(index: number, now: number): boolean {
    return (this.courses.get(index) as Course).doneAt <= now;
  }

  /** The runner was told that it is done. */
  seen(index: number, now: number): void {
    const course = this.courses.get(index) as Course;
    course.seenAt ??= now;
  }
}

export interface Figures {
  requests: number;
  /** From the beginning to the moment the last result was seen, in ms. */
  ms: number;
  /** Median over the items of the time from done to seen, in ms. */
  lateMs: number;
  seen: number;
  /** Paid tasks that nobody looked at to the end. */
  left: number;
  refused: number;
}

export function figuresOf(service: TimedService, ms: number): Figures {
  const courses = [...service.courses.values()];
  const seen = courses.filter((course) => course.seenAt !== null);
  const late = seen.map(({ seenAt, doneAt }) => (seenAt as number) - doneAt).sort((a, b) => a - b);
  return {
    requests: service.requests,
    ms,
    lateMs: late[late.length >> 1] ?? 0,
    seen: seen.length,
    left: courses.length - seen.length,
    refused: service.refused,
  };
}

/**
 * The least time in which anybody could be done who knew everything: two requests an item through the limits of the
 * minute and the day, and each generation begun as early as they allow, the longest first.
 */
export function leastMs(jobs: readonly Job[], plan: PlanName): number {
  const { perMinute, perDay } = planLimits[plan];
  const rounds = (requests: number, limit: number | null, ms: number) =>
    limit === null ? 0 : ms * Math.floor(requests / limit);
  const since = (requests: number) =>
    Math.max(rounds(requests, perMinute, 60_000), rounds(requests, perDay, 86_400_000));
  const longest = jobs.map(({ durationMs }) => durationMs).sort((a, b) => b - a);
  return Math.max(since(2 * jobs.length - 1), ...longest.map((ms, index) => since(index) + ms));
}
