import { limitsOf } from "../../api/plans.js";
import type { AccountRecord, Change, TokenBucket, WorldState } from "../state/state.js";
import type { LimiterSwitches } from "../state/switches.js";
import type { RequestLimit, Span } from "./gates.js";
import { fixedWindow, type RequestLog, refilled, slidingCounter, slidingLog, tokenBucket } from "./gates.js";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

export interface Admission {
  /** Milliseconds until the request would pass; null when it passes. */
  waitMs: number | null;
  /** How this request is remembered. */
  changes: Change[];
  /** The minute's limit after this request; null on an unlimited plan. */
  minute: () => { limit: number; remaining: number; resetMs: number } | null;
}

interface Counting {
  gate: RequestLimit;
  span: Span;
  /** What is left in the bucket before this request, if there is a bucket. */
  tokens: number | undefined;
}

/**
 * Judges a request by its account's plan, the minute and the day. One that passes is remembered in both; a refused
 * one in neither, unless refused requests count too.
 */
export function admit(
  state: WorldState,
  account: AccountRecord,
  switches: LimiterSwitches,
  now: number,
): Admission {
  const { perMinute, perDay } = limitsOf(account.plan);
  const minuteSpan: Span = { name: "minute", ms: minuteMs, alignMs: switches.alignMs };
  const minute = counted(state, account, switches, perMinute, minuteSpan, now);
  const day = counted(state, account, switches, perDay, { name: "day", ms: dayMs, alignMs: 0 }, now);
  const both = [minute, day].filter((counting) => counting !== null);
  const waitMs = Math.max(0, ...both.map(({ gate }) => gate.waitMs));
  const taken = waitMs === 0 || switches.countsRejected ? 1 : 0;
  return {
    waitMs: waitMs === 0 ? null : waitMs,
    changes:
      taken === 1
        ? both.flatMap((counting) => remembered(account, counting, now)).concat(logged(account, both, now))
        : [],
    minute: () => minute && after(minute.gate, taken),
  };
}

function counted(
  state: WorldState,
  account: AccountRecord,
  switches: LimiterSwitches,
  limit: number | null,
  span: Span,
  now: number,
): Counting | null {
  if (limit === null) return null;
  const log: RequestLog = { state, accountId: account.id, newest: account.admitted };
  const kind = span.name === "day" ? dayKind(switches) : switches.kind;
  if (kind !== "token-bucket") {
    const count = {
      "sliding-log": slidingLog,
      "fixed-window": fixedWindow,
      "sliding-counter": slidingCounter,
    };
    return { gate: count[kind](log, limit, span, now), span, tokens: undefined };
  }
  const capacity = span.name === "minute" ? (switches.burst ?? limit) : limit;
  const tokens = refilled(state.bucket(account.id, span.name), capacity, limit, span, now);
  return { gate: tokenBucket(tokens, capacity, limit, span), span, tokens };
}

/** A day from midnight is a fixed window. A rolling one is counted like the minute, or exactly if that is fixed. */
function dayKind({ kind, day }: LimiterSwitches): LimiterSwitches["kind"] {
  if (day === "utc") return "fixed-window";
  return kind === "fixed-window" ? "sliding-log" : kind;
}

function remembered(account: AccountRecord, { span, tokens }: Counting, now: number): Change[] {
  if (tokens === undefined) return [];
  // Refused requests that count may empty a bucket, but never put it into debt.
  const bucket: TokenBucket = { tokens: Math.max(0, tokens - 1), at: now };
  return [{ kind: "bucket drawn", accountId: account.id, window: span.name, bucket }];
}

function logged(account: AccountRecord, both: readonly Counting[], now: number): Change[] {
  if (both.every(({ tokens }) => tokens !== undefined)) return [];
  return [{ kind: "request admitted", accountId: account.id, n: account.admitted + 1, at: now }];
}

function after(gate: RequestLimit, taken: number) {
  const { remaining, resetMs } = gate.standing();
  return { limit: gate.limit, remaining: Math.max(0, remaining - taken), resetMs };
}
