import type { Credits } from "../core/money.js";
import type { Sql } from "../sqlite.js";
import { firstNumber } from "./entry-number.js";

/** What an entry of the books has cost, or may have: a task that failed and an answer that was no charge free its price. */
const cost = `
  CASE
    WHEN outcome = 'free' OR verdict = 'not_charged' THEN 0
    WHEN task = 'failed' THEN kept
    WHEN outcome = 'accepted' THEN coalesce(charged, price)
    ELSE price
  END`;

const spent = `
  SELECT coalesce(sum(${cost}), 0) AS credits
  FROM entries JOIN keys USING (origin, fingerprint) WHERE entries.id >= ? AND account_id = ?`;

/**
 * What paid requests of all keys of an account, from all workspaces, have cost or may have that were sent since then.
 * Entries are numbered by their time, so no other index is needed.
 */
export function spentSince(sql: Sql, accountId: number, since: number): Credits {
  return (sql(spent).get(firstNumber(since), accountId) as { credits: Credits }).credits;
}
