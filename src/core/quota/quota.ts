import type { Endpoint } from "../../api/endpoints.js";
import type { PlanLimits, PlanName } from "../../api/plans.js";
import { localTime } from "../../text/times.js";
import type { WaitReason } from "../reason.js";

/** An instant that is known only to lie between two times (both UTC ms). */
export interface DaySpan {
  earliest: number;
  latest: number;
}

/** A local day, from its start until the start of the next (both UTC ms). */
export interface Day {
  from: number;
  to: number;
}

/** The day of an instant; if it may be one of several days, from the start of the first to the end of the last. */
export function dayOf({ earliest, latest }: DaySpan): Day {
  return { from: new Date(earliest).setHours(0, 0, 0, 0), to: new Date(latest).setHours(24, 0, 0, 0) };
}

/**
 * The request windows. A request occupies a window from its sending until the window's length after its *response*;
 * one without a response, until that long after sending + its timeout + the longest time that a request may still be
 * in flight (`lateMsMax`). A request may be sent only while fewer than N occupy the window.
 *
 * Why this suffices: take any 60 seconds in which requests arrive at the service, and the one of them that was sent
 * last. Each of the others arrived before its own response or its own latest arrival, and that lies less than 60
 * seconds before this one was sent: so each was still counted when it was sent. Hence at most N arrive, whatever the
 * latencies. The same holds for 24 hours.
 */
export const minuteMs = 60_000;
export const dayMs = 24 * 60 * minuteMs;

/** Milliseconds until an answer counts as lost, per endpoint. */
export const timeoutMs: Readonly<Record<Endpoint, number>> = {
  generate: 120_000,
  task: 30_000,
  models: 30_000,
  me: 30_000,
};

/** Milliseconds that a request whose answer counts as lost may still take to arrive. */
export const lateMsMax = 400_000;

/** When a request that has no answer yet counts as ended, at the latest. UTC ms. */
export function presumedEnd(endpoint: Endpoint, sentAt: number): number {
  return sentAt + timeoutMs[endpoint] + lateMsMax;
}

/**
 * The pacing of requests within the windows. `burst` sends while a slot is free: exact for fixed windows, sliding logs
 * and full buckets. `paced` spaces the sends, as estimated sliding windows require. `strict` waits from answer to send,
 * which every known limiter accepts. An account starts with burst. A 429 that its quota ledger does not explain moves
 * it to the next pacing, which is remembered for a month.
 */
export type Pacing = "burst" | "paced" | "strict";
export const pacingMemoryMs = 30 * dayMs;

/**
 * Until an account has sent a few minutes' worth of requests in bursts, only this many are in flight at once, and the
 * very first go one by one: if the service counts differently, no more are refused before that is known.
 */
export const provenMinutes = 3;
const firstOnes = 3;

export function unprovenAtOnce(sent: number): number {
  return sent < firstOnes ? 1 : 2;
}

/** A slower answer (ms) does not delay the next request, so a whole minute's requests can still be sent. */
export const promptMs = 2_000;

/** The least time (ms) between two requests of a pacing: two slots a minute stay unused. */
export function spacingMs(pacing: Pacing, perMinute: number | null): number {
  return pacing === "burst" || perMinute === null ? 0 : Math.ceil(minuteMs / Math.max(1, perMinute - 2));
}

/**
 * How long (ms) nothing is sent after a change to this pacing, even if the service asks for less: if refused requests
 * count as well, the window has become fuller than when the service named its delay.
 */
export function restMs(pacing: Pacing, perMinute: number | null): number {
  return Math.min(restMsMax, 5 * spacingMs(pacing, perMinute));
}

const restMsMax = 15_000;

/** The pacing after a 429 that the quota ledger does not explain. */
export function slower(pacing: Pacing): Pacing {
  return pacing === "burst" ? "paced" : "strict";
}

/** How full a window is. */
export interface Window {
  /** Null means unlimited. */
  limit: number | null;
  /** Requests that occupy it now. The minute of an account without limits counts none. */
  used: number;
  /** When a slot is free (UTC ms): `now` if one is. */
  nextFreeAt: number;
  /** When the next request leaves the window (UTC ms); null if it is empty. */
  nextReleaseAt: number | null;
}

export interface Quota {
  minute: Window;
  day: Window;
  /** When the minute's used slots become free (UTC ms), soonest first. */
  releases: readonly number[];
  /**
   * What the account's pacing requires: the least time between two sends (ms), when the next may leave (UTC ms), and
   * how many may leave now, if that is limited.
   */
  pacing: { spacingMs: number; nextAt: number; atOnce?: number };
  /** Requests of the day that other runs of the account need for their open tasks. */
  owedElsewhere: number;
  /** The service asked for a pause until then (UTC ms), or null. */
  blockedUntil: number | null;
}

/** Requests that may be sent at once: infinite on an unlimited plan. */
export function freeSlots(quota: Quota, now: number): number {
  if (quota.blockedUntil !== null && quota.blockedUntil > now) return 0;
  if (quota.pacing.nextAt > now) return 0;
  const slots = freeInWindows(quota);
  return Math.min(slots, quota.pacing.spacingMs > 0 ? 1 : (quota.pacing.atOnce ?? slots));
}

/** Free slots of the windows, even if not all may be used at once. */
export function freeInWindows({ minute, day }: Quota): number {
  return Math.max(0, Math.min(slotsLeft(minute), slotsLeft(day)));
}

/** Milliseconds until a used slot is free again: a minute, and about as long as an answer takes. */
const roundMs = minuteMs + 700;

/**
 * How many requests can be sent within each of these times (ms, ascending), if each slot is reused as soon as it is
 * free: infinite on an unlimited plan.
 */
export function slotsWithin(quota: Quota, now: number, times: readonly number[]): number[] {
  const silentMs = Math.max(0, (quota.blockedUntil ?? now) - now);
  const { spacingMs, nextAt } = quota.pacing;
  const free = slotsLeft(quota.minute);
  const starts = quota.releases.map((at) => Math.max(silentMs, at - now));
  return times.map((ms) => {
    const rounds = (startMs: number) => 1 + Math.floor((ms - startMs) / roundMs);
    let slots = ms < silentMs ? 0 : free * rounds(silentMs);
    for (const startMs of starts) {
      if (ms < startMs) break;
      slots += rounds(startMs);
    }
    if (spacingMs > 0) {
      const waitMs = Math.max(silentMs, nextAt - now);
      slots = Math.min(slots, 1 + Math.floor((ms - waitMs) / spacingMs));
    }
    return Math.max(0, Math.min(slots, slotsLeft(quota.day)));
  });
}

/** Requests left in a window: infinite when it has no limit. */
export function slotsLeft(window: Window): number {
  return window.limit === null ? Number.POSITIVE_INFINITY : window.limit - window.used;
}

/** Daily requests reserved for paid work: one poll for each open task, two requests for each unknown. */
export function owedRequests(
  counts: Readonly<Record<"submitting" | "processing" | "overdue" | "unknown", number>>,
): number {
  return counts.submitting + counts.processing + counts.overdue + 2 * counts.unknown;
}

/** What the next request waits for, after `begun` others; the day counts before the minute, because it is the longer wait. */
export function waitsFor(quota: Quota, now: number, begun = 0): Exclude<WaitReason, "reserve"> {
  if (quota.blockedUntil !== null && quota.blockedUntil > now) return "service";
  if (slotsLeft(quota.day) <= begun) return "day";
  return slotsLeft(quota.minute) <= begun ? "minute" : "pacing";
}

/** A pause asked for by the service is waited out up to this long (ms); a longer one counts like a used-up day. */
const patienceMs = 30 * minuteMs;

/** Whether a wait is so long that the user should decide about it. */
export function isLongWait(what: WaitReason, waitMs: number): what is "day" | "reserve" | "service" {
  return what === "day" || what === "reserve" || (what === "service" && waitMs > patienceMs);
}

/** No request can be sent for a long time, and the user does not want to wait. */
export class NoRequestsUntil extends Error {
  override readonly name = "NoRequestsUntil";
  /** `until` is when the next request may be sent (UTC ms). */
  constructor(what: "day" | "reserve" | "service", until: number) {
    super(
      what === "service" ? silenceText(until) : `the day's requests are used up until ${localTime(until)}`,
    );
  }
}

export function silenceText(until: number): string {
  return `the service asks for no more requests until ${localTime(until)} (\`bulkgen account --forget-pause\` asks it again now)`;
}

/** When a request may be sent (UTC ms), after `more` others. */
export function nextSendAt(quota: Quota, now: number, begun = 0): number {
  return Math.max(
    quota.blockedUntil ?? now,
    pacingFreeAt(quota, now, begun),
    minuteFreeAt(quota, now, begun),
    begun > 0 && slotsLeft(quota.day) <= begun
      ? (quota.day.nextReleaseAt ?? now + dayMs)
      : quota.day.nextFreeAt,
  );
}

function pacingFreeAt({ pacing }: Quota, now: number, begun: number): number {
  if (begun === 0) return pacing.nextAt;
  if (pacing.spacingMs > 0) return now + pacing.spacingMs;
  return pacing.atOnce !== undefined && begun >= pacing.atOnce ? now + promptMs : pacing.nextAt;
}

function minuteFreeAt({ minute, releases }: Quota, now: number, begun: number): number {
  if (begun === 0) return minute.nextFreeAt;
  const missing = begun - slotsLeft(minute);
  return missing < 0 ? now : (releases[missing] ?? now + minuteMs);
}

/** The user's own limits: a number of requests, or a percentage of the account's. */
export interface OwnLimits {
  rpm?: number;
  rpd?: number;
  share?: number;
}

/** The smaller of the plan's limits and the user's own; null means no limit. */
export function narrowed(plan: PlanLimits, own: OwnLimits): PlanLimits {
  return {
    perMinute: smaller(part(plan.perMinute, own.share), own.rpm),
    perDay: smaller(part(plan.perDay, own.share), own.rpd),
  };
}

function part(limit: number | null, share: number | undefined): number | null {
  return limit === null || share === undefined ? limit : Math.max(1, Math.floor((limit * share) / 100));
}

function smaller(limit: number | null, own: number | undefined): number | null {
  if (own === undefined) return limit;
  return limit === null ? own : Math.min(limit, own);
}

/** POSTs that may be in flight at once: more are faster, fewer leave less in doubt after a crash. */
const lanesByPlan: Readonly<Record<PlanName, number>> = { Starter: 1, Pro: 2, Enterprise: 16 };

export function lanesOf(plan: string): number {
  return Object.hasOwn(lanesByPlan, plan) ? lanesByPlan[plan as PlanName] : 1;
}

/**
 * The port to an account's lanes, shared by all processes on this machine. A lane is taken before the intent is
 * recorded and released when the answer is, or when its process ends: so a crash leaves at most as many POSTs without
 * an answer as there are lanes.
 */
export interface Lanes {
  /** A free lane, or null if all are taken, by this or other processes. */
  take(): Lane | null;
  /** Takes all lanes of the key, in all processes; null while one of them is taken. */
  bracket(): Lane | null;
}

export interface Lane {
  release(): void;
}
