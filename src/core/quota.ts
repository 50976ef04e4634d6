import type { Endpoint } from "../api/endpoints.js";
import type { PlanLimits } from "../api/plans.js";
import { timeoutMs } from "./send.js";

/**
 * The request windows. A request occupies a window from its sending until the window's length after its *response*;
 * one without a response, until that long after sending + its timeout + the longest time that a request may still be
 * under way (`lateMsMax`). A request may be sent only while fewer than N occupy the window.
 *
 * Why this suffices: take any 60 seconds in which requests arrive at the service, and the one of them that was sent
 * last. Each of the others arrived before its own response or its own latest arrival, and that lies less than 60
 * seconds before this one was sent: so each was still counted when it was sent. Hence at most N arrive, whatever the
 * latencies. The same holds for 24 hours.
 */
export const minuteMs = 60_000;
export const dayMs = 24 * 60 * minuteMs;

/** Milliseconds that a request whose answer was given up may still take to arrive. */
export const lateMsMax = 400_000;

/** When a request that has no answer yet counts as ended, at the latest. UTC ms. */
export function presumedEnd(endpoint: Endpoint, sentAt: number): number {
  return sentAt + timeoutMs[endpoint] + lateMsMax;
}

/** How full one window is. */
export interface Window {
  /** Null is unlimited. */
  limit: number | null;
  /** Requests that occupy it now. */
  used: number;
  /** When a place is free (UTC ms): now when there is one. */
  nextFreeAt: number;
  /** When the next of the requests that occupy it leaves it (UTC ms); null when it is empty. */
  nextReleaseAt: number | null;
}

export interface Quota {
  minute: Window;
  day: Window;
  /** The service asked for silence until then (UTC ms), or null. */
  blockedUntil: number | null;
}

/** Requests that may be sent at once: infinite on an unlimited plan. */
export function freePlaces(quota: Quota, now: number): number {
  if (quota.blockedUntil !== null && quota.blockedUntil > now) return 0;
  return Math.max(0, Math.min(left(quota.minute), left(quota.day)));
}

/** Requests left in a window: infinite when it has no limit. */
export function left(window: Window): number {
  return window.limit === null ? Number.POSITIVE_INFINITY : window.limit - window.used;
}

/** Requests of the day that are owed to paid work: one look for each open task, two requests for each unknown. */
export function owedRequests(
  counts: Readonly<Record<"submitting" | "processing" | "overdue" | "unknown", number>>,
): number {
  return counts.submitting + counts.processing + counts.overdue + 2 * counts.unknown;
}

/** What the next request waits for: the day comes before the minute, because it is the longer wait. */
export function waitsFor(quota: Quota, now: number): "service" | "day" | "minute" {
  if (quota.blockedUntil !== null && quota.blockedUntil > now) return "service";
  return left(quota.day) < 1 ? "day" : "minute";
}

/** The day's requests are used up, and nobody wanted to wait for more. */
export class DayLimitReached extends Error {
  override readonly name = "DayLimitReached";
  /** `until` is when the next request may be sent (UTC ms). */
  constructor(readonly until: number) {
    super(`the day's requests are used up until ${utcTime(until)}`);
  }
}

/** A time as messages tell it, such as `2026-11-20 06:30 UTC`. */
export function utcTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** When a request may be sent next, UTC ms. */
export function nextSendAt(quota: Quota, now: number): number {
  return Math.max(quota.blockedUntil ?? now, quota.minute.nextFreeAt, quota.day.nextFreeAt);
}

/** The smaller of the plan's limits and the user's own; null means no limit. */
export function narrowed(plan: PlanLimits, own: { rpm?: number; rpd?: number }): PlanLimits {
  return { perMinute: smaller(plan.perMinute, own.rpm), perDay: smaller(plan.perDay, own.rpd) };
}

function smaller(limit: number | null, own: number | undefined): number | null {
  if (own === undefined) return limit;
  return limit === null ? own : Math.min(limit, own);
}
