/**
 * How many lanes the service bears: paid requests in flight at once, under the ceiling of the plan or `--lanes`. Trouble
 * halves them, and each second of good answers gives an eighth of the ceiling back, so that a run is at full speed eight
 * seconds after the trouble is over. Requests that were under way together are one trouble.
 */
export interface LaneLimit {
  /** Lanes that may be used; rounded down, at least one. */
  lanes: number;
  ceiling: number;
  /** How long answers usually take (ms); null before the first. */
  usualMs: number | null;
  /** When the lanes were last halved and last raised, by the monotonic clock (ms). */
  halvedAt: number;
  raisedAt: number;
}

/**
 * What an answer says of the service itself. Trouble: it refused for now (429), answered 5xx or what cannot be read, or
 * did not answer.
 */
export type ServiceSign = "good" | "trouble";

/** A paid request and what came of it; times by the monotonic clock (ms). */
export interface LaneAnswer {
  sentAt: number;
  at: number;
  sign: ServiceSign;
}

/** Milliseconds of good answers from none to the ceiling; a pause between two answers counts up to `pauseMsMax`. */
const toCeilingMs = 8_000;
const pauseMsMax = 2_000;
/** An answer that takes this many times as long as usual is trouble. One within `slowMs` never is. */
const slowTimes = 3;
const slowMs = 2_000;

export function fullLanes(ceiling: number): LaneLimit {
  const never = Number.NEGATIVE_INFINITY;
  return { lanes: ceiling, ceiling, usualMs: null, halvedAt: never, raisedAt: never };
}

export function afterAnswer(limit: LaneLimit, answer: LaneAnswer): LaneLimit {
  const { lanes, ceiling, usualMs } = limit;
  const { sentAt, at, sign } = answer;
  const ms = at - sentAt;
  // What is slow for long becomes usual: fewer lanes would not make it faster.
  const next = { ...limit, usualMs: usualMs === null ? ms : (3 * usualMs + ms) / 4 };
  const isSlow = usualMs !== null && ms > Math.max(slowMs, slowTimes * usualMs);
  if (sign === "trouble" || isSlow)
    return sentAt < limit.halvedAt ? next : { ...next, lanes: Math.max(1, lanes / 2), halvedAt: at };
  // Answers that came together are heard of in any order: one from before the last trouble says nothing new.
  const since = Math.max(limit.halvedAt, limit.raisedAt);
  const goodMs = Math.min(pauseMsMax, Math.max(0, at - since));
  return {
    ...next,
    lanes: Math.min(ceiling, lanes + (ceiling * goodMs) / toCeilingMs),
    raisedAt: Math.max(limit.raisedAt, at),
  };
}

/** Everything planned is to be submitted within this time (ms), if the lanes suffice. */
const submitWithinMs = 5_000;

/**
 * How many lanes to use: as many as keep the pipeline busy, and no more than the service bears. Each request in flight is
 * in doubt if the process dies, so a run begins with one lane and takes more only as the time of the answers shows that
 * everything planned would otherwise take too long. A user who asks for lanes gets them from the start.
 */
export class LanesInUse {
  private needed: number;
  private limit: LaneLimit;

  /** `lanes` is the most to use; `saves`: no more than are needed. */
  constructor(
    private readonly lanes: number,
    saves: boolean,
  ) {
    this.needed = saves ? 1 : lanes;
    this.limit = fullLanes(lanes);
  }

  answered(answer: LaneAnswer): void {
    this.limit = afterAnswer(this.limit, answer);
  }

  /** Notes how many items are planned. The need never falls, so that the last items are submitted as fast as the first. */
  see(planned: number): void {
    const wanted = Math.ceil((planned * (this.limit.usualMs ?? 0)) / submitWithinMs);
    this.needed = Math.max(this.needed, Math.min(wanted, this.lanes));
  }

  get count(): number {
    return Math.min(this.needed, Math.floor(this.limit.lanes));
  }
}
