/**
 * Requests that somebody else makes with a key show in the service's count: it grows by more than this machine can have
 * sent. Whether a count includes a request that is under way or was lost is not known, so between two readings the
 * request counts as ours in the later one; but once it can no longer arrive, it explains no later growth.
 */
export interface KeyRequests {
  /** Requests of the key, as the service counts them. */
  requests: number;
  /** Requests that this machine had sent with the key when the answer was there. */
  sent: number;
  /** Those of them that were over before the service was asked: answered, or lost so long ago that none arrives any more. */
  over: number;
}

/** A key before its first request. */
export const newKey: Pick<KeyRequests, "requests" | "over"> = { requests: 0, over: 0 };

/** How many requests the key has made, as the service told it; null where that is no count. */
export function requestsTold(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}

/** How many requests at least somebody else has made between two looks. */
export function foreignRequests(
  earlier: Pick<KeyRequests, "requests" | "over">,
  later: Pick<KeyRequests, "requests" | "sent">,
): number {
  return Math.max(0, later.requests - earlier.requests - (later.sent - earlier.over));
}
