import type { Day } from "../core/day.js";
import type { Credits } from "../core/money.js";
import type { Connection } from "./item-rows.js";

/** What an entry of the books has cost, or may have: a task that failed and an answer that was no charge free its price. */
const cost = `
  CASE
    WHEN outcome = 'free' OR verdict = 'not_charged' THEN 0
    WHEN task = 'failed' THEN kept
    WHEN outcome = 'accepted' THEN coalesce(charged, price)
    ELSE price
  END`;

/**
 * Nothing is sent in the future: what seems to be was sent while a clock was ahead, perhaps today. It counts until a day
 * has passed on which it was found.
 */
const spent = `
  SELECT
    coalesce(sum(CASE WHEN sent_at < @to OR found_at IS NULL OR found_at >= @from THEN ${cost} ELSE 0 END), 0) AS credits,
    coalesce(max(sent_at >= @to AND (found_at IS NULL OR found_at >= @to)), 0) AS found
  FROM entries JOIN keys USING (origin, fingerprint) WHERE sent_at >= @from AND account_id = @accountId`;

const find = `
  UPDATE entries SET found_at = @to - 1
  WHERE sent_at >= @to AND (found_at IS NULL OR found_at >= @to)
    AND (origin, fingerprint) IN (SELECT origin, fingerprint FROM keys WHERE account_id = @accountId)`;

/** What paid requests of all keys of an account, from all workspaces, have cost or may have that were sent on a day. */
export function spentOn(
  { sql, atomic }: Pick<Connection, "sql" | "atomic">,
  accountId: number,
  { from, to }: Day,
): Credits {
  const { credits, found } = sql(spent).get({ accountId, from, to }) as { credits: Credits; found: number };
  if (found > 0) atomic(() => sql(find).run({ accountId, to }));
  return credits;
}
