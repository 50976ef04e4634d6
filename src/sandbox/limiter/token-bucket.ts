import type { Bucket } from "../state/state.js";
import type { RequestLimit, Span } from "./gate.js";

/** Sums of small fractions fall a hair short of the whole that they stand for. */
const hair = 1e-6;

/** What a bucket holds at `now`, refilled evenly since it was last looked at. A new one is full. */
export function refilled(
  bucket: Bucket | undefined,
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
