import type { Amount } from "../../core/ports/accounts.js";
import type { OwnLimits, Quota } from "../../core/quota/quota.js";
import type { Database } from "../script.js";
import { timeBlockMs } from "./accounts-schema.js";
import { quotaOf } from "./windows.js";

/** Reads the quota of an account, and changes nothing. */
export type QuotaReader = ReturnType<typeof quotaOn>;

export const spentStepMs = timeBlockMs;

/** The quota of a user at a service, in an open database of either kind. */
export function quotaOn({ sql, read }: Pick<Database, "sql" | "read">, origin: string, userId: string) {
  return {
    /**
     * As a run with these limits of its own sees it. Null if the account is not known, or if its requests have times in the
     * future.
     */
    read: (now: number, own?: OwnLimits): Promise<Quota | null> =>
      read(function* () {
        const id = yield* sql("SELECT id FROM accounts WHERE origin = ? AND user_id = ?").value(
          origin,
          userId,
        );
        return id === undefined ? null : yield* quotaOf(sql, Number(id), { now, claimant: undefined, own });
      }),

    /**
     * Requests sent since then (UTC ms), counted per interval; requests older than a day are deleted. None if nothing
     * limits the account, because then not all requests are kept.
     */
    requests: (since: number, stepMs: number): Promise<Amount[]> =>
      read(function* () {
        return (yield* sql(
          `SELECT CAST(sent_at / @stepMs AS INTEGER) * @stepMs AS at, count(*) AS amount FROM requests
           WHERE account_id = (
             SELECT id FROM accounts WHERE origin = @origin AND user_id = @userId
               AND (limit_minute IS NOT NULL OR limit_day IS NOT NULL)) AND sent_at >= @since
           GROUP BY 1 ORDER BY 1`,
        ).all({ origin, userId, since, stepMs })) as Amount[];
      }),

    /** Credits of paid requests since then, in millionths, per `spentStepMs`. */
    spent: (since: number): Promise<Amount[]> =>
      read(function* () {
        return (yield* sql(
          `SELECT CAST(block AS INTEGER) * ${timeBlockMs} AS at, sum(credits) AS amount FROM spent
           WHERE kind = 'time' AND block >= CAST(@since / ${timeBlockMs} AS INTEGER) AND origin = @origin AND fingerprint IN (
             SELECT fingerprint FROM keys WHERE origin = @origin
               AND account_id = (SELECT id FROM accounts WHERE origin = @origin AND user_id = @userId))
           GROUP BY 1 ORDER BY 1`,
        ).all({ origin, userId, since })) as Amount[];
      }),
  };
}
