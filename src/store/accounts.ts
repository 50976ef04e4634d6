import type { PlanLimits } from "../api/plans.js";
import { planLimits } from "../api/plans.js";
import type { Clock } from "../clock.js";
import { type Account, type Accounts, OtherUser } from "../core/accounts.js";
import type { Credits } from "../core/money.js";
import {
  dayMs,
  freePlaces,
  minuteMs,
  nextSendAt,
  presumedEnd,
  type Quota,
  type Window,
  waitsFor,
} from "../core/quota.js";
import { silenceMs } from "../core/retry.js";
import { booksOf } from "./books.js";
import { booksMigration } from "./books-schema.js";
import type { Migration, Sql } from "./open.js";
import { openDatabase, statements, transactions } from "./open.js";

/** Times are UTC ms. `ended_at` is when the answer came, or the latest at which one that never came counts as ended. */
const accountsMigrations: readonly Migration[] = [
  (db) =>
    db.exec(`
      CREATE TABLE opened (count INTEGER NOT NULL);
      INSERT INTO opened VALUES (0);
      CREATE TABLE accounts (
        id INTEGER PRIMARY KEY,
        origin TEXT NOT NULL,
        user_id TEXT,
        limit_minute INTEGER,
        limit_day INTEGER,
        silent_until INTEGER,
        strikes INTEGER NOT NULL DEFAULT 0,
        UNIQUE (origin, user_id)
      );
      CREATE TABLE keys (
        origin TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        account_id INTEGER NOT NULL REFERENCES accounts,
        PRIMARY KEY (origin, fingerprint)
      );
      CREATE TABLE requests (
        id INTEGER PRIMARY KEY,
        account_id INTEGER NOT NULL REFERENCES accounts,
        endpoint TEXT NOT NULL,
        sent_at INTEGER NOT NULL,
        ended_at INTEGER NOT NULL
      );
      CREATE INDEX requests_window ON requests (account_id, ended_at);
      -- The highest charge seen, in millionths of a credit, for a model with its params.
      CREATE TABLE charges (
        origin TEXT NOT NULL,
        price_group TEXT NOT NULL,
        highest INTEGER NOT NULL,
        PRIMARY KEY (origin, price_group)
      );
    `),
  booksMigration,
];

/** Opens the data that all workspaces of this user share. Throws NewerDatabase, or SQLite's error. */
export function openAccounts(path: string, clock: Clock): Accounts {
  const db = openDatabase(path, accountsMigrations);
  const sql = statements(db);
  const atomic = transactions(db);

  return {
    accountOf: async (origin, fingerprint) =>
      atomic(() => {
        const known = sql(
          "SELECT a.* FROM keys k JOIN accounts a ON a.id = k.account_id WHERE k.origin = ? AND k.fingerprint = ?",
        ).get(origin, fingerprint) as AccountRow | undefined;
        if (known) return asAccount(known);
        const most = planLimits.Starter;
        const { lastInsertRowid } = sql(
          "INSERT INTO accounts (origin, limit_minute, limit_day) VALUES (?, ?, ?)",
        ).run(origin, most.perMinute, most.perDay);
        sql("INSERT INTO keys (origin, fingerprint, account_id) VALUES (?, ?, ?)").run(
          origin,
          fingerprint,
          lastInsertRowid,
        );
        return { id: Number(lastInsertRowid), origin, userId: null };
      }),

    name: async (accountId, userId) => atomic(() => name(sql, accountId, userId)),

    async setLimits(accountId, limits: PlanLimits) {
      sql("UPDATE accounts SET limit_minute = ?, limit_day = ? WHERE id = ?").run(
        limits.perMinute,
        limits.perDay,
        accountId,
      );
    },

    quota: async (accountId) => atomic(() => quota(sql, accountId, clock.now())),

    reserve: async (accountId, endpoint) =>
      atomic(() => {
        const now = clock.now();
        forget(sql, accountId, now);
        afterClockChange(sql, accountId, now);
        const current = quota(sql, accountId, now);
        if (freePlaces(current, now) < 1) {
          return { ticket: null, waitUntil: nextSendAt(current, now), waitsFor: waitsFor(current, now) };
        }
        const { lastInsertRowid } = sql(
          "INSERT INTO requests (account_id, endpoint, sent_at, ended_at) VALUES (?, ?, ?, ?)",
        ).run(accountId, endpoint, now, presumedEnd(endpoint, now));
        sql("UPDATE accounts SET sent = sent + 1 WHERE id = ?").run(accountId);
        return { ticket: { id: Number(lastInsertRowid) } };
      }),

    answered: async (ticket) =>
      atomic(() => {
        sql("UPDATE requests SET ended_at = ? WHERE id = ?").run(clock.now(), ticket.id);
        sql(
          "UPDATE accounts SET answered = answered + 1 WHERE id = (SELECT account_id FROM requests WHERE id = ?)",
        ).run(ticket.id);
      }),

    release: async (ticket) =>
      atomic(() => {
        sql(
          "UPDATE accounts SET sent = sent - 1 WHERE id = (SELECT account_id FROM requests WHERE id = ?)",
        ).run(ticket.id);
        sql("DELETE FROM requests WHERE id = ?").run(ticket.id);
      }),

    silence: async (accountId, ms) =>
      atomic(() => {
        const now = clock.now();
        const row = sql("SELECT * FROM accounts WHERE id = ?").get(accountId) as AccountRow;
        // Requests that were in flight together are refused together: that is one strike.
        const again = row.silent_until !== null && row.silent_until > now;
        const strikes = again ? row.strikes : strikesInARow(row, now) + 1;
        const until = Math.max(now + (ms ?? silenceMs(strikes)), again ? (row.silent_until ?? 0) : 0);
        sql("UPDATE accounts SET silent_until = ?, strikes = ? WHERE id = ?").run(until, strikes, accountId);
        return { until };
      }),

    charged: async (accountId, group, amount) =>
      atomic(() => {
        sql(
          `INSERT INTO charges SELECT origin, ?, ? FROM accounts WHERE id = ?
           ON CONFLICT DO UPDATE SET highest = max(highest, excluded.highest)`,
        ).run(group, amount, accountId);
      }),

    async highestCharges(accountId) {
      const rows = sql(
        "SELECT price_group, highest FROM charges WHERE origin = (SELECT origin FROM accounts WHERE id = ?)",
      ).all(accountId) as { price_group: string; highest: number }[];
      return new Map(rows.map((row) => [row.price_group, row.highest as Credits]));
    },

    books: (owner) => booksOf({ db, sql, clock }, owner),

    close: () => db.close(),
  };
}

/** Strikes count as in a row when the next comes within ten minutes of the last silence. */
function strikesInARow(row: AccountRow, now: number): number {
  return row.silent_until !== null && now - row.silent_until < 10 * minuteMs ? row.strikes : 0;
}

function name(sql: Sql, accountId: number, userId: string): Account {
  const own = sql("SELECT * FROM accounts WHERE id = ?").get(accountId) as AccountRow;
  if (own.user_id === userId) return asAccount(own);
  if (own.user_id !== null) throw new OtherUser(own.user_id, userId, own.origin);
  const other = sql("SELECT * FROM accounts WHERE origin = ? AND user_id = ?").get(own.origin, userId) as
    | AccountRow
    | undefined;
  if (!other) {
    sql("UPDATE accounts SET user_id = ? WHERE id = ?").run(userId, accountId);
    return { ...asAccount(own), userId };
  }
  sql("UPDATE keys SET account_id = ? WHERE account_id = ?").run(other.id, accountId);
  sql("UPDATE requests SET account_id = ? WHERE account_id = ?").run(other.id, accountId);
  sql("UPDATE accounts SET sent = sent + ?, answered = answered + ? WHERE id = ?").run(
    own.sent,
    own.answered,
    other.id,
  );
  sql("DELETE FROM accounts WHERE id = ?").run(accountId);
  return asAccount(other);
}

function quota(sql: Sql, accountId: number, now: number): Quota {
  const row = sql("SELECT * FROM accounts WHERE id = ?").get(accountId) as AccountRow;
  return {
    minute: window(sql, accountId, row.limit_minute, minuteMs, now),
    day: window(sql, accountId, row.limit_day, dayMs, now),
    blockedUntil: row.silent_until !== null && row.silent_until > now ? row.silent_until : null,
  };
}

function window(sql: Sql, accountId: number, limit: number | null, lengthMs: number, now: number): Window {
  const since = now - lengthMs;
  const { used } = sql("SELECT count(*) AS used FROM requests WHERE account_id = ? AND ended_at > ?").get(
    accountId,
    since,
  ) as { used: number };
  // Bound alone, the parameter after OFFSET would have the statement planned anew each time.
  const leaves = (index: number) => {
    const row = sql(
      "SELECT ended_at FROM requests WHERE account_id = ? AND ended_at > ? ORDER BY ended_at LIMIT 1 OFFSET ? + 0",
    ).get(accountId, since, index) as { ended_at: number } | undefined;
    return row ? row.ended_at + lengthMs : null;
  };
  const full = limit !== null && used >= limit;
  return {
    limit,
    used,
    nextFreeAt: full ? (leaves(used - limit) ?? now) : now,
    nextReleaseAt: leaves(0),
  };
}

/** Requests that no window holds any more are of no use. */
function forget(sql: Sql, accountId: number, now: number): void {
  sql("DELETE FROM requests WHERE account_id = ? AND ended_at <= ?").run(accountId, now - dayMs);
}

/** Longer than any silence, and than any request can take. */
const aheadMsMax = 2 * 60 * minuteMs;

/**
 * After the clock was put back, what was booked before lies in the future and would hold its places for as long. It
 * counts as sent now, which is the latest that it can have been.
 */
function afterClockChange(sql: Sql, accountId: number, now: number): void {
  sql(
    "UPDATE requests SET ended_at = ? + (ended_at - sent_at), sent_at = ? WHERE account_id = ? AND sent_at > ?",
  ).run(now, now, accountId, now + aheadMsMax);
  sql("UPDATE accounts SET silent_until = ? WHERE id = ? AND silent_until > ?").run(
    now + minuteMs,
    accountId,
    now + aheadMsMax,
  );
}

interface AccountRow {
  id: number;
  origin: string;
  user_id: string | null;
  limit_minute: number | null;
  limit_day: number | null;
  silent_until: number | null;
  strikes: number;
  sent: number;
  answered: number;
}

function asAccount(row: AccountRow): Account {
  return { id: row.id, origin: row.origin, userId: row.user_id };
}
