import { foreignRequests, type KeyRequests } from "../../core/charges/readings.js";
import type { Counters } from "../../core/ports/spend-log.js";
import { dayMs, lateMsMax } from "../../core/quota/quota.js";
import type { Queries, Script } from "../script.js";
import type { AccountRow } from "./accounts-schema.js";

interface Key {
  origin: string;
  fingerprint: string;
}

type RequestCounters = Pick<Counters, "requests" | "over">;

interface KeyRow {
  counted: number | null;
  counted_at: number;
  counted_over: number;
}

const ownKey = "origin = @origin AND fingerprint = @fingerprint";

/**
 * An answered request has ended. A request without an answer counts for so much longer that the two can be told apart.
 */
const overNow = `
  SELECT sent - (SELECT count(*) FROM requests AS r
    WHERE r.account_id = keys.account_id AND r.fingerprint = keys.fingerprint
      AND r.ended_at > @now AND r.ended_at - r.sent_at >= ${lateMsMax}) AS count
  FROM keys WHERE ${ownKey}`;

/** The requests of a key that were answered, or sent so long ago that they cannot arrive any more. */
export function* overSoFar(sql: Queries, { origin, fingerprint }: Key, now: number): Script<number> {
  return ((yield* sql(overNow).get({ origin, fingerprint, now })) as { count: number }).count;
}

/** What a counter reading says about the key's requests, once its answer is there. */
export function* countedOf(
  sql: Queries,
  { origin, fingerprint }: Key,
  { requests, over }: RequestCounters,
): Script<KeyRequests> {
  const { sent } = (yield* sql(`SELECT sent FROM keys WHERE ${ownKey}`).get({ origin, fingerprint })) as {
    sent: number;
  };
  // The reading itself has ended too: a service counts it either in its own answer or after it, consistently.
  return { requests, sent, over: over + 1 };
}

/**
 * Compares the service's count of the key's requests with ours since the last reading. The surplus came from another
 * machine or program and occupies the account's windows too, so it is recorded evenly over the time in between. Returns
 * how many were foreign; 0 the first time.
 */
export function* countForeign(
  sql: Queries,
  account: AccountRow,
  { fingerprint, now, ...counters }: RequestCounters & { fingerprint: string; now: number },
): Script<number> {
  const key = { origin: account.origin, fingerprint };
  const before = (yield* sql(`SELECT counted, counted_at, counted_over FROM keys WHERE ${ownKey}`).get(
    key,
  )) as KeyRow;
  const counted = yield* countedOf(sql, key, counters);
  yield* sql(
    `UPDATE keys SET counted = @requests, counted_at = @now, counted_over = @over WHERE ${ownKey}`,
  ).run({
    ...key,
    requests: counted.requests,
    over: counted.over,
    now,
  });
  if (before.counted === null) return 0;
  const foreign = foreignRequests({ requests: before.counted, over: before.counted_over }, counted);
  if (foreign > 0)
    yield* recordForeign(sql, account, { foreign, from: Math.max(before.counted_at, now - dayMs), now });
  return foreign;
}

function* recordForeign(
  sql: Queries,
  account: AccountRow,
  { foreign, from, now }: { foreign: number; from: number; now: number },
): Script<void> {
  const most = account.limit_day ?? 0;
  const count = Math.min(foreign, most);
  for (let index = 1; index <= count; index++) {
    const at = Math.round(from + ((now - from) * index) / count);
    yield* sql(
      "INSERT INTO requests (account_id, endpoint, sent_at, ended_at) VALUES (?, 'foreign', ?, ?)",
    ).run(account.id, at, at);
  }
  // They may have caused a refusal since then.
  if (account.pacing_before !== null && account.pacing_since !== null && account.pacing_since >= from) {
    yield* sql("UPDATE accounts SET pacing = pacing_before, pacing_before = NULL WHERE id = ?").run(
      account.id,
    );
  }
}
