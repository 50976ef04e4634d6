import type { TokenBucket, WorldState } from "../state/state.js";

/** One limit at the time of a request: a number of requests in a window, with a way of counting. */
export interface RequestLimit {
  limit: number;
  /** Milliseconds until one more request can pass; 0 or less when it can now. */
  waitMs: number;
  /** How many more could pass now, and when the limiter resets. For the headers only: it costs more. */
  standing(): { remaining: number; resetMs: number };
}

/** A window of time in which requests are counted. */
export interface Span {
  name: "minute" | "day";
  ms: number;
  /** Start of fixed windows, in milliseconds after a multiple of `ms` since 1970. */
  alignMs: number;
}

/** The start of the window that contains `now`. */
function windowStart(span: Span, now: number): number {
  return Math.floor((now - span.alignMs) / span.ms) * span.ms + span.alignMs;
}

/** Sums of small fractions fall a hair short of the whole that they stand for. */
const hair = 1e-6;

/** A bucket's tokens at `now`, refilled evenly since its last use. A new bucket is full. */
export function refilled(
  bucket: TokenBucket | undefined,
  capacity: number,
  limit: number,
  span: Span,
  now: number,
): number {
  if (!bucket) return capacity;
  return Math.min(capacity, bucket.tokens + (Math.max(0, now - bucket.at) * limit) / span.ms);
}

/** A bucket of tokens: each request takes one, `limit` come back in each window. */
export function tokenBucket(tokens: number, capacity: number, limit: number, span: Span): RequestLimit {
  const tokenMs = span.ms / limit;
  return {
    limit,
    waitMs: tokens + hair >= 1 ? 0 : Math.ceil((1 - tokens) * tokenMs - hair),
    standing: () => ({
      remaining: Math.floor(Math.max(0, tokens) + hair),
      resetMs: Math.ceil((capacity - tokens) * tokenMs),
    }),
  };
}

/**
 * The log of counted requests, from which the limiters below follow. Its entries are numbered from 1 and their times
 * never fall, so one lookup of the Nth last tells whether a window is full, and a binary search how many are in it. If
 * the clock is set back, full windows stay full until it has caught up.
 */
export interface RequestLog {
  state: WorldState;
  accountId: string;
  /** The number of the newest entry. */
  newest: number;
}

/** At most `limit` requests in any window, wherever it begins. */
export function slidingLog(log: RequestLog, limit: number, span: Span, now: number): RequestLimit {
  const nthLast = nthLastAt(log, limit);
  return {
    limit,
    waitMs: nthLast === undefined ? 0 : nthLast + span.ms - now,
    standing: () => {
      const used = countSince(log, now - span.ms + 1);
      const oldest = used === 0 ? now - span.ms : (nthLastAt(log, used) ?? now);
      return { remaining: Math.max(0, limit - used), resetMs: oldest + span.ms - now };
    },
  };
}

/** At most `limit` requests in each of the windows that follow one another. */
export function fixedWindow(log: RequestLog, limit: number, span: Span, now: number): RequestLimit {
  const start = windowStart(span, now);
  const nthLast = nthLastAt(log, limit);
  const resetMs = start + span.ms - now;
  return {
    limit,
    waitMs: nthLast !== undefined && nthLast >= start ? resetMs : 0,
    standing: () => ({ remaining: Math.max(0, limit - countSince(log, start)), resetMs }),
  };
}

/**
 * The usual approximation of a sliding log: the count of this fixed window, and that of the one before weighted by
 * how much of it the sliding window still covers.
 */
export function slidingCounter(log: RequestLog, limit: number, span: Span, now: number): RequestLimit {
  const start = windowStart(span, now);
  const current = countSince(log, start);
  const previous = countSince(log, start - span.ms) - current;
  const leftMs = start + span.ms - now;
  // In requests times milliseconds, which are integers: rounding would refuse a client that waited exactly as long as
  // it was asked to.
  const estimate = current * span.ms + previous * leftMs;
  return {
    limit,
    waitMs:
      estimate < limit * span.ms
        ? 0
        : Math.max(1, start - now + roomAfter(limit, current, previous, span.ms)),
    standing: () => ({
      remaining: Math.max(0, Math.ceil((limit * span.ms - estimate) / span.ms)),
      resetMs: leftMs,
    }),
  };
}

/** Milliseconds after the window's start when the estimate falls below the limit, if nothing else is counted. */
function roomAfter(limit: number, current: number, previous: number, ms: number): number {
  if (current < limit) return Math.floor(((previous - (limit - current)) * ms) / previous) + 1;
  // Only in the next window, where this one counts as the previous.
  return ms + Math.floor(((current - limit) * ms) / current) + 1;
}

function nthLastAt({ state, accountId, newest }: RequestLog, n: number): number | undefined {
  return newest < n ? undefined : state.admittedAt(accountId, newest - n + 1);
}

/** How many entries are not older than `since`. Entries that are no longer kept count as older. */
function countSince({ state, accountId, newest }: RequestLog, since: number): number {
  let older = 0;
  let first = newest + 1;
  while (first - older > 1) {
    const middle = (older + first) >> 1;
    const at = state.admittedAt(accountId, middle);
    if (at !== undefined && at >= since) first = middle;
    else older = middle;
  }
  return newest - first + 1;
}
