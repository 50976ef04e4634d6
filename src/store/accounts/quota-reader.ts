import type { Quota } from "../../core/quota/quota.js";
import { openSqlite, statements } from "../../sqlite.js";
import { finish, sqliteQueries } from "../script.js";
import { timeBlockMs } from "./accounts-schema.js";
import { quotaOf } from "./windows.js";

/** The quota of an account for those who only look, on a read-only connection. */
export interface QuotaReader {
  /** Null where the account is not known, or its requests are of the future. */
  read(now: number): Quota | null;
  /** Requests sent since then (UTC ms), counted per step of time; those that no window needs any more are forgotten. */
  requests(since: number, stepMs: number): Amount[];
  /** Credits of paid requests since then, in millionths, per `spentStepMs`. */
  spent(since: number): Amount[];
  close(): void;
}

export const spentStepMs = timeBlockMs;

/** An amount in the step of time that begins then (UTC ms). */
export interface Amount {
  at: number;
  amount: number;
}

/** Opens the quota of a user at a service. Throws SQLite's error. */
export function openQuota(path: string, origin: string, userId: string): QuotaReader {
  const db = openSqlite(path, { readonly: true });
  const sql = statements(db);
  return {
    read(now) {
      const id = sql("SELECT id FROM accounts WHERE origin = ? AND user_id = ?").value(origin, userId);
      return id === undefined
        ? null
        : finish(quotaOf(sqliteQueries(db), Number(id), { now, claimant: undefined }));
    },
    requests: (since, stepMs) =>
      sql(
        `SELECT CAST(sent_at / @stepMs AS INTEGER) * @stepMs AS at, count(*) AS amount FROM requests
         WHERE account_id = (SELECT id FROM accounts WHERE origin = @origin AND user_id = @userId) AND sent_at >= @since
         GROUP BY 1 ORDER BY 1`,
      ).all({ origin, userId, since, stepMs }) as Amount[],
    spent: (since) =>
      sql(
        `SELECT CAST(block AS INTEGER) * ${timeBlockMs} AS at, sum(credits) AS amount FROM spent
         WHERE kind = 'time' AND block >= CAST(@since / ${timeBlockMs} AS INTEGER) AND origin = @origin AND fingerprint IN (
           SELECT fingerprint FROM keys WHERE origin = @origin
             AND account_id = (SELECT id FROM accounts WHERE origin = @origin AND user_id = @userId))
         GROUP BY 1 ORDER BY 1`,
      ).all({ origin, userId, since }) as Amount[],
    close: () => db.close(),
  };
}
