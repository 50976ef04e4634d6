import {
  dayMs,
  minuteMs,
  narrowed,
  type OwnLimits,
  type Pacing,
  pacingMemoryMs,
  presumedEnd,
  promptMs,
  provenMinutes,
  type Quota,
  spacingMs,
  unprovenAtOnce,
  type Window,
} from "../../core/quota/quota.js";
import type { Queries, Script } from "../script.js";
import type { AccountRow } from "./accounts-schema.js";

/**
 * What an account's requests leave free; null if something was recorded at a time in the future, which has to be
 * corrected first. A run asks at every turn, so the requests of the last minute are read once, and everything about the
 * minute is computed from them.
 */
export function* quotaOf(
  sql: Queries,
  accountId: number,
  { now, claimant, own }: QuotaQuery,
): Script<Quota | null> {
  const since = now - dayMs;
  const found = yield* sql(accountOfDay).get(since, since, claimant ?? null, since, accountId);
  const row = limited(found as AccountOfDay, own);
  // Where nothing is limited, none of them counts.
  const isUnlimited = row.limit_minute === null && row.limit_day === null;
  const requests = isUnlimited ? [] : yield* requestsSince(sql, accountId, now - minuteMs);
  if (isOfFuture(row, requests, now)) return null;
  return {
    minute: minuteWindow(row.limit_minute, requests, now),
    day: yield* dayWindow(sql, row, now),
    releases: row.limit_minute === null ? [] : requests.map(({ endedAt }) => endedAt + minuteMs),
    pacing: pacingState(row, requests, now),
    owedElsewhere: row.owed,
    blockedUntil: row.silent_until !== null && row.silent_until > now ? row.silent_until : null,
  };
}

/** The quota, after times that lie in the future are corrected. Call it inside a transaction. */
export function* correctedQuota(sql: Queries, accountId: number, asking: QuotaQuery): Script<Quota> {
  const quota = yield* quotaOf(sql, accountId, asking);
  if (quota !== null) return quota;
  yield* bringBack(sql, accountId, asking.now);
  return yield* correctedQuota(sql, accountId, asking);
}

/**
 * The time of the question, the run that asks (its own needs are not counted as needs of others), and the user's own limits
 * for it.
 */
interface QuotaQuery {
  now: number;
  claimant: string | undefined;
  own?: OwnLimits | undefined;
}

/** An account with the limits that a process keeps to, which are those of the plan or less. */
export function limited<Row extends Pick<AccountRow, "limit_minute" | "limit_day">>(
  row: Row,
  own: OwnLimits = {},
): Row {
  const { perMinute, perDay } = narrowed({ perMinute: row.limit_minute, perDay: row.limit_day }, own);
  return { ...row, limit_minute: perMinute, limit_day: perDay };
}

/** The limits and the state of an account, its requests of the day, and the needs of other runs. */
interface AccountOfDay extends PacingColumns {
  limit_day: number | null;
  silent_until: number | null;
  silent_at: number | null;
  used: number;
  first: number | null;
  owed: number;
  /** When a run last stated its need. */
  owed_at: number | null;
}

/** The columns that an account's pacing depends on. */
type PacingColumns = Pick<AccountRow, "id" | "limit_minute" | "pacing" | "pacing_since" | "sent">;

const ofDay = "FROM requests WHERE account_id = accounts.id AND ended_at > ?";
const accountOfDay = `
  SELECT id, limit_minute, limit_day, silent_until, silent_at, pacing, pacing_since, sent,
    (SELECT count(*) ${ofDay}) AS used, (SELECT min(ended_at) ${ofDay}) AS first,
    (SELECT coalesce(sum(requests), 0) FROM owed WHERE account_id = accounts.id AND run IS DISTINCT FROM ? AND at > ?) AS owed,
    (SELECT max(at) FROM owed WHERE account_id = accounts.id) AS owed_at
  FROM accounts WHERE id = ?`;

export function* accountRow(sql: Queries, accountId: number): Script<AccountRow> {
  return (yield* sql("SELECT * FROM accounts WHERE id = ?").get(accountId)) as AccountRow;
}

export function pacingOf(
  { pacing, pacing_since: since }: Pick<AccountRow, "pacing" | "pacing_since">,
  now: number,
): Pacing {
  return since !== null && now - since > pacingMemoryMs ? "burst" : pacing;
}

/** A request in a window: when it was sent, and the time from which its window is counted (UTC ms). */
interface Occupant {
  sentAt: number;
  endedAt: number;
}

/** Ordered by their ends. */
function* requestsSince(sql: Queries, accountId: number, since: number): Script<Occupant[]> {
  return (yield* sql(
    `SELECT sent_at AS sentAt, ended_at AS endedAt FROM requests
     WHERE account_id = ? AND ended_at > ? ORDER BY ended_at`,
  ).all(accountId, since)) as Occupant[];
}

function minuteWindow(limit: number | null, requests: readonly Occupant[], now: number): Window {
  const used = requests.length;
  const last = limit !== null && used >= limit ? requests[used - limit] : undefined;
  const [first] = requests;
  return {
    limit,
    used,
    nextFreeAt: last === undefined ? now : last.endedAt + minuteMs,
    nextReleaseAt: first === undefined ? null : first.endedAt + minuteMs,
  };
}

function* dayWindow(
  sql: Queries,
  { id, limit_day: limit, used, first }: AccountOfDay,
  now: number,
): Script<Window> {
  const since = now - dayMs;
  const isFull = limit !== null && used >= limit;
  return {
    limit,
    used,
    nextFreeAt: isFull ? ((yield* endedAt(sql, id, since, used - limit)) ?? since) + dayMs : now,
    nextReleaseAt: first === null ? null : first + dayMs,
  };
}

/** When the request at that index of a window ended, counted from the earliest. */
function* endedAt(sql: Queries, accountId: number, since: number, index: number): Script<number | null> {
  // With a bare parameter after OFFSET, SQLite would plan the statement again each time.
  const row = (yield* sql(
    "SELECT ended_at FROM requests WHERE account_id = ? AND ended_at > ? ORDER BY ended_at LIMIT 1 OFFSET ? + 0",
  ).get(accountId, since, index)) as { ended_at: number } | undefined;
  return row?.ended_at ?? null;
}

/** When the pacing allows the next request: a time after the last one was sent, or answered. */
function pacingState(row: PacingColumns, requests: readonly Occupant[], now: number): Quota["pacing"] {
  const pacing = pacingOf(row, now);
  const spacing = spacingMs(pacing, row.limit_minute);
  if (spacing === 0) return burstState(row, requests, now);
  const times = requests.map(({ sentAt, endedAt }) => (pacing === "paced" ? sentAt : endedAt));
  return { spacingMs: spacing, nextAt: times.length === 0 ? 0 : Math.max(...times) + spacing };
}

/** A burst, kept small until the service has been seen to accept one. */
function burstState(row: PacingColumns, requests: readonly Occupant[], now: number): Quota["pacing"] {
  if (row.limit_minute === null || isProven(row, row.limit_minute)) return { spacingMs: 0, nextAt: 0 };
  const open = requests.filter(({ sentAt, endedAt }) => endedAt > now && sentAt > now - promptMs);
  const atOnce = Math.max(0, unprovenAtOnce(row.sent) - open.length);
  const first = Math.min(...open.map(({ sentAt }) => sentAt));
  return { spacingMs: 0, nextAt: atOnce === 0 ? first + promptMs : 0, atOnce };
}

/** A refused burst is remembered for a month; then bursts are tried again, as carefully as the first time. */
function isProven({ pacing, sent }: PacingColumns, perMinute: number): boolean {
  return pacing === "burst" && sent >= provenMinutes * perMinute;
}

/** No request is sent in the future; smaller differences (ms) are normal corrections of the clock. */
const aheadMsMax = minuteMs;

/** The latest end of a request that was sent by now (UTC ms): paid requests have the longest timeout. */
function latestEnd(now: number): number {
  return presumedEnd("generate", now) + aheadMsMax;
}

/** Whether something was recorded at a time in the future, because the clock was set back since. */
function isOfFuture(row: AccountOfDay, requests: readonly Occupant[], now: number): boolean {
  const limit = now + aheadMsMax;
  if ([row.silent_at, row.pacing_since, row.owed_at].some((at) => at !== null && at > limit)) return true;
  const latest = latestEnd(now);
  return requests.some(({ sentAt, endedAt }) => (sentAt > limit && endedAt > limit) || endedAt > latest);
}

/**
 * Requests recorded before the clock was set back lie in the future and would occupy their slots for too long. They count
 * as sent now, the latest possible time. A silence starts again, and so does everything that is remembered for a time.
 */
export function* bringBack(sql: Queries, accountId: number, now: number): Script<void> {
  // A request that was answered before the clock was corrected has only its end in the future.
  yield* sql(
    `UPDATE requests SET ended_at = min(@now + (ended_at - sent_at), @latest), sent_at = min(sent_at, @now)
     WHERE account_id = @accountId AND ended_at > @limit AND (sent_at > @limit OR ended_at > @latest)`,
  ).run({ accountId, now, limit: now + aheadMsMax, latest: latestEnd(now) });
  yield* sql(
    "UPDATE accounts SET silent_until = ? + (silent_until - silent_at), silent_at = ? WHERE id = ? AND silent_at > ?",
  ).run(now, now, accountId, now + aheadMsMax);
  yield* sql("UPDATE accounts SET pacing_since = ? WHERE id = ? AND pacing_since > ?").run(
    now,
    accountId,
    now + aheadMsMax,
  );
  yield* sql("UPDATE owed SET at = ? WHERE account_id = ? AND at > ?").run(now, accountId, now + aheadMsMax);
}
