import { dayMs } from "../core/quota.js";
import type { Sql } from "../sqlite.js";
import type { AccountRow } from "./accounts-schema.js";

interface Told {
  fingerprint: string;
  /** Requests that the key ever made, by GET me. */
  requests: number;
  now: number;
}

interface KeyRow {
  told: number | null;
  told_at: number;
  told_sent: number;
  told_open: number;
}

/**
 * Compares the service's count of the key's requests with ours since it was last told. Whatever it has more, somebody
 * else made, on another machine or with another program, and the account's windows hold it too: it is booked evenly
 * over the time in between. Requests that were still under way the last time may have been counted since, so they are
 * nobody else's. Returns how many were foreign; 0 the first time.
 */
export function bookForeign(sql: Sql, account: AccountRow, { fingerprint, requests, now }: Told): number {
  const key = [account.origin, fingerprint];
  const before = sql(
    "SELECT told, told_at, told_sent, told_open FROM keys WHERE origin = ? AND fingerprint = ?",
  ).get(...key) as KeyRow | undefined;
  const { open } = sql("SELECT count(*) AS open FROM requests WHERE account_id = ? AND ended_at > ?").get(
    account.id,
    now,
  ) as { open: number };
  sql(
    "UPDATE keys SET told = ?, told_at = ?, told_sent = ?, told_open = ? WHERE origin = ? AND fingerprint = ?",
  ).run(requests, now, account.sent, open, ...key);
  if (!before || before.told === null) return 0;
  const ours = account.sent - before.told_sent + before.told_open;
  const foreign = Math.max(0, requests - before.told - ours);
  if (foreign > 0) book(sql, account, { foreign, from: Math.max(before.told_at, now - dayMs), now });
  return foreign;
}

function book(
  sql: Sql,
  account: AccountRow,
  { foreign, from, now }: { foreign: number; from: number; now: number },
): void {
  const most = account.limit_day ?? 0;
  const count = Math.min(foreign, most);
  for (let index = 1; index <= count; index++) {
    const at = Math.round(from + ((now - from) * index) / count);
    sql("INSERT INTO requests (account_id, endpoint, sent_at, ended_at) VALUES (?, 'foreign', ?, ?)").run(
      account.id,
      at,
      at,
    );
  }
  // A refusal since then was theirs to cause.
  if (account.gait_before !== null && account.gait_at !== null && account.gait_at >= from) {
    sql("UPDATE accounts SET gait = gait_before, gait_before = NULL WHERE id = ?").run(account.id);
  }
}
