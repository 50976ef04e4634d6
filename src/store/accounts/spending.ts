import { type Credits, minus, plus } from "../../core/money.js";
import type { BalanceMark, Bounds, TakenCredits } from "../../core/ports/spend-log.js";
import type { Day } from "../../core/quota/quota.js";
import type { Sql } from "../../sqlite.js";

/** What a paid request has cost, or may have cost. A failed task and an answer without a charge free its price. */
const cost = `
  CASE
    WHEN outcome = 'free' OR verdict = 'not_charged' THEN 0
    WHEN task = 'failed' THEN kept
    WHEN outcome = 'accepted' THEN coalesce(charged, price)
    ELSE price
  END`;

/**
 * A request with a time in the future was sent while a clock was ahead, perhaps today. It also counts on the day on which
 * it was found.
 */
const spent = `
  SELECT
    coalesce(sum(CASE WHEN sent_at < @to OR found_at IS NULL OR found_at >= @from THEN ${cost} ELSE 0 END), 0) AS credits,
    coalesce(max(sent_at >= @to AND (found_at IS NULL OR found_at >= @to)), 0) AS found
  FROM spend_log JOIN keys USING (origin, fingerprint) WHERE sent_at >= @from AND account_id = @accountId`;

const find = `
  UPDATE spend_log SET found_at = @to - 1
  WHERE sent_at >= @to AND (found_at IS NULL OR found_at >= @to)
    AND (origin, fingerprint) IN (SELECT origin, fingerprint FROM keys WHERE account_id = @accountId)`;

/**
 * What the paid requests that were sent on a day have cost or may have cost, over all keys of the account and all
 * workspaces. Call it inside a transaction.
 */
export function spentOn(sql: Sql, accountId: number, day: Day): Credits {
  const { credits, hasNew } = spentSoFar(sql, accountId, day);
  if (hasNew) sql(find).run({ accountId, to: day.to });
  return credits;
}

/** The same as it is on record, and whether some request with a time in the future is to be marked as found. */
export function spentSoFar(
  sql: Sql,
  accountId: number,
  { from, to }: Day,
): { credits: Credits; hasNew: boolean } {
  const { credits, found } = sql(spent).get({ accountId, from, to }) as { credits: Credits; found: number };
  return { credits, hasNew: found > 0 };
}

const ofAccount = "FROM spend_log JOIN keys USING (origin, fingerprint) WHERE account_id = @accountId";

/** Requests answered before the balance reading are in it, and unanswered ones whose charge a reading by then has shown. */
const isIn = `
  coalesce(outcome <> 'unknown' AND ended_seq <= @seq, 0)
    OR coalesce(verdict = 'charged' AND (verdict_seq <= @seq OR verdict_seq = @reading), 0)`;

// Each part uses an index of its own; the unary plus keeps SQLite from the other index.
const taken = `
  SELECT
    (SELECT coalesce(sum(${cost}), 0) ${ofAccount} AND intended_seq > @seq) AS since,
    (SELECT coalesce(sum(${cost}), 0) ${ofAccount} AND sent_at > @dayBefore AND +intended_seq <= @seq AND NOT (${isIn})) AS before`;

/** What paid requests have taken or may have taken from a balance since it was read, over all keys and workspaces. */
export function takenFrom(sql: Sql, accountId: number, mark: BalanceMark): TakenCredits {
  return sql(taken).get({ accountId, ...mark }) as TakenCredits;
}

/** The credits that the caps leave for another paid request of the account; null without caps. */
export function remainingWithin(sql: Sql, accountId: number, { daily, kept }: Bounds): Credits | null {
  const rooms: Credits[] = [];
  if (daily !== null) rooms.push(minus(daily.most, spentOn(sql, accountId, daily.day)));
  if (kept !== null) {
    const { since, before } = takenFrom(sql, accountId, kept.mark);
    rooms.push(minus(kept.most, plus(since, before)));
  }
  return rooms.length === 0 ? null : (Math.min(...rooms) as Credits);
}
