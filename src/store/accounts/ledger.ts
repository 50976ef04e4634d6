import type { Endpoint } from "../../api/endpoints.js";
import { leastSilenceMs, silenceMs } from "../../core/again.js";
import type { Caller, Claim, Past, Reservation } from "../../core/ports/accounts.js";
import type { Ticket } from "../../core/ports/send.js";
import type { Counters } from "../../core/ports/spend-log.js";
import {
  dayMs,
  freeSlots,
  minuteMs,
  nextSendAt,
  type OwnLimits,
  type Pacing,
  presumedEnd,
  type Quota,
  restMs,
  slotsLeft,
  slower,
  waitsFor,
} from "../../core/quota/quota.js";
import { alone, type Database, type Queries, type Script } from "../script.js";
import type { AccountRow } from "./accounts-schema.js";
import { countForeign, overSoFar } from "./foreign-requests.js";
import { lastSeq } from "./spend-log.js";
import { accountRow, bringBack, correctedQuota, limited, pacingOf, quotaOf } from "./windows.js";

/** Milliseconds between two deletions of lines that are in no window any more. */
const forgetMs = minuteMs;

/**
 * The quota ledger: the requests in the windows, the requests that open tasks need, and the refusals. `own` are the user's
 * own limits of this process, by account.
 */
export function ledgerMethods({ sql, atomic, read, clock }: Database, own: ReadonlyMap<number, OwnLimits>) {
  let forgotAt = Number.NEGATIVE_INFINITY;
  /** If nothing limits an account, no reservation depends on the others. */
  let wasUnlimited = false;
  /** Deletes lines that no query counts. */
  function* forget(accountId: number, now: number): Script<void> {
    if (Math.abs(now - forgotAt) < forgetMs) return;
    forgotAt = now;
    yield* sql("DELETE FROM requests WHERE account_id = ? AND ended_at <= ?").run(accountId, now - dayMs);
  }

  return {
    /** The windows as a run sees them; `owedElsewhere` excludes the run's own needs. */
    // Reads without a lock: the reservation checks again.
    async quota(accountId: number, claimant?: string): Promise<Quota> {
      const asking = { now: clock.now(), claimant, own: own.get(accountId) };
      const quota = await read(() => quotaOf(sql, accountId, asking));
      return quota ?? atomic(() => correctedQuota(sql, accountId, asking));
    },

    /**
     * Reserves a slot in the windows if there is one. The clock is read inside the transaction. With a claim, only if the
     * day then still holds all that this and the other runs of the account owe to their open tasks.
     */
    async reserve(
      { accountId, fingerprint }: Caller,
      endpoint: Endpoint,
      claim?: Claim,
    ): Promise<Reservation> {
      const isApart = wasUnlimited;
      return atomic(
        function* (): Script<Reservation> {
          const now = clock.now();
          yield* forget(accountId, now);
          const asking = { now, claimant: claim?.claimant, own: own.get(accountId) };
          let current = yield* correctedQuota(sql, accountId, asking);
          if (isApart && !isUnlimited(current)) {
            yield* alone();
            current = yield* correctedQuota(sql, accountId, asking);
          }
          wasUnlimited = isUnlimited(current);
          if (freeSlots(current, now) < 1) {
            return { ticket: null, waitUntil: nextSendAt(current, now), waitsFor: waitsFor(current, now) };
          }
          if (claim && slotsLeft(current.day) - 1 < current.owedElsewhere + claim.requests) {
            const waitUntil = current.day.nextReleaseAt ?? now + minuteMs;
            return { ticket: null, waitUntil, waitsFor: "reserve" };
          }
          if (claim && current.day.limit !== null) yield* owe(sql, accountId, claim, now);
          const id = yield* sql(
            "INSERT INTO requests (account_id, fingerprint, endpoint, sent_at, ended_at) VALUES (?, ?, ?, ?, ?)",
          ).insert(accountId, fingerprint, endpoint, now, presumedEnd(endpoint, now));
          yield* addSent(sql, id, 1);
          return { ticket: { id, isUnlimited: isUnlimited(current) } };
        },
        isApart ? { part: {} } : undefined,
      );
    },

    /**
     * States how many of the day's requests a run needs for its open tasks. A need that is not stated again expires after
     * a day.
     */
    owes: async (accountId: number, claim: Claim): Promise<void> =>
      atomic(() => owe(sql, accountId, claim, clock.now())),

    /**
     * The answer came: the slot stays used until the window's length after now. An answer other than a 429 ends a row of
     * 429s.
     */
    answered: async (ticket: Ticket, isRefused = false): Promise<void> =>
      atomic(
        function* () {
          const now = clock.now();
          const isForgotten = ticket.isUnlimited === true && !isRefused;
          // After the clock was set back, the request seems to be sent later than it ended.
          if (!isForgotten)
            yield* sql("UPDATE requests SET ended_at = ?, sent_at = min(sent_at, ?) WHERE id = ?").run(
              now,
              now,
              ticket.id,
            );
          // An answer to a request sent before the silence does not show that the silence is over.
          if (!isRefused) yield* sql(noMoreStrikes).run(ticket.id);
          if (isForgotten) yield* sql("DELETE FROM requests WHERE id = ?").run(ticket.id);
        },
        { part: {} },
      ),

    /** Frees the slot of a request that was never sent. */
    release: async (ticket: Ticket): Promise<void> =>
      atomic(function* () {
        yield* addSent(sql, ticket.id, -1);
        yield* sql("DELETE FROM requests WHERE id = ?").run(ticket.id);
      }),

    /**
     * A 429: nothing is sent for `ms`, or longer each time in a row if the service named no delay; a service that keeps
     * refusing is left alone for longer even if it named one. If the ledger does not explain the 429, the account moves
     * to the next pacing, and `slowed` is that pacing.
     */
    silence: async (
      accountId: number,
      ms: number | null,
    ): Promise<{ until: number; slowed: Pacing | null }> =>
      atomic(function* () {
        const now = clock.now();
        yield* bringBack(sql, accountId, now);
        const row = limited(yield* accountRow(sql, accountId), own.get(accountId));
        // Requests in flight at the same time are refused together, which counts as one strike.
        const again = row.silent_until !== null && row.silent_until > now;
        const strikes = again ? row.strikes : strikesInARow(row, now) + 1;
        const wait = ms === null ? silenceMs(strikes) : Math.max(ms, leastSilenceMs(strikes));
        const slowed = again ? null : yield* stepDown(sql, row, ms, now);
        const rest = slowed === null ? 0 : restMs(slowed, row.limit_minute);
        const until = Math.max(now + wait, now + rest, again ? (row.silent_until ?? 0) : 0);
        yield* sql("UPDATE accounts SET silent_until = ?, silent_at = ?, strikes = ? WHERE id = ?").run(
          until,
          now,
          strikes,
          accountId,
        );
        return { until, slowed };
      }),

    /** Forgets the pause that the service asked for. Returns until when it was (UTC ms); null if there is none. */
    forgetPause: async (accountId: number): Promise<number | null> =>
      atomic(function* () {
        const { silent_until: until } = yield* accountRow(sql, accountId);
        if (until === null || until <= clock.now()) return null;
        yield* sql("UPDATE accounts SET silent_until = NULL, silent_at = NULL, strikes = 0 WHERE id = ?").run(
          accountId,
        );
        return until;
      }),

    /** The requests made with a key so far. */
    past: ({ accountId, fingerprint }: Caller): Promise<Past> =>
      read(function* () {
        const { origin } = yield* accountRow(sql, accountId);
        return {
          over: yield* overSoFar(sql, { origin, fingerprint }, clock.now()),
          seq: yield* lastSeq(sql),
        };
      }),

    /**
     * GET me has returned how many requests the key has ever made. Requests since the last time that this machine did not
     * make were made by somebody else: they are counted too. Returns their number.
     */
    counted: async (
      { accountId, fingerprint }: Caller,
      counters: Pick<Counters, "requests" | "over">,
    ): Promise<number> =>
      atomic(function* () {
        const account = limited(yield* accountRow(sql, accountId), own.get(accountId));
        return yield* countForeign(sql, account, { ...counters, fingerprint, now: clock.now() });
      }),
  };
}

function isUnlimited({ minute, day }: Quota): boolean {
  return minute.limit === null && day.limit === null;
}

const noMoreStrikes = `
  UPDATE accounts SET strikes = 0 FROM requests AS r
  WHERE r.id = ? AND accounts.id = r.account_id AND strikes > 0 AND silent_until <= r.sent_at`;

/** Strikes are consecutive when the next comes within ten minutes of the last silence. */
function strikesInARow(row: AccountRow, now: number): number {
  return row.silent_until !== null && now - row.silent_until < 10 * minuteMs ? row.strikes : 0;
}

/** A longer silence is about the day's limit, which pacing cannot avoid. */
const silenceOfMinuteMs = 2 * minuteMs;

/**
 * Every request fitted in the windows, so a 429 means that the service counts differently and pacing must be slower. Except
 * when foreign requests were seen, or when no other request came before this one.
 */
function* stepDown(sql: Queries, row: AccountRow, ms: number | null, now: number): Script<Pacing | null> {
  const pacing = pacingOf(row, now);
  const since = now - minuteMs;
  const { own, foreign } = (yield* sql(
    `SELECT count(*) FILTER (WHERE endpoint <> 'foreign') AS own, count(*) FILTER (WHERE endpoint = 'foreign') AS "foreign"
     FROM requests WHERE account_id = ? AND ended_at > ?`,
  ).get(row.id, since)) as { own: number; foreign: number };
  const isOfDay = ms !== null && ms > silenceOfMinuteMs;
  if (pacing === "strict" || row.limit_minute === null || isOfDay) return null;
  if (own < 2 || foreign > 0) return null;
  const slowed = slower(pacing);
  yield* sql("UPDATE accounts SET pacing = ?, pacing_since = ?, pacing_before = ? WHERE id = ?").run(
    slowed,
    now,
    pacing,
    row.id,
  );
  return slowed;
}

/** Counts the request for the account, whose pacing depends on it, and for the key, to compare with the service's count. */
function* addSent(sql: Queries, request: number, count: 1 | -1): Script<void> {
  yield* sql(
    "UPDATE accounts SET sent = accounts.sent + ? FROM requests AS r WHERE r.id = ? AND accounts.id = r.account_id",
  ).run(count, request);
  yield* sql(
    `UPDATE keys SET sent = keys.sent + ? FROM requests AS r, accounts AS a
     WHERE r.id = ? AND a.id = r.account_id AND keys.origin = a.origin AND keys.fingerprint = r.fingerprint`,
  ).run(count, request);
}

function* owe(sql: Queries, accountId: number, { claimant, requests }: Claim, now: number): Script<void> {
  if (requests === 0) {
    yield* sql("DELETE FROM owed WHERE account_id = ? AND run = ?").run(accountId, claimant);
    return;
  }
  yield* sql(
    `INSERT INTO owed (account_id, run, requests, at) VALUES (?, ?, ?, ?)
     ON CONFLICT (account_id, run) DO UPDATE SET requests = excluded.requests, at = excluded.at`,
  ).run(accountId, claimant, requests, now);
}
