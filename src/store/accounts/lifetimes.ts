import type { Accounts } from "../../core/ports/accounts.js";
import type { Connection } from "../workspace/transition.js";

/** How long the addresses of outputs live, for each host of a service's account. */
export function lifetimeMethods({ sql }: Connection): Pick<Accounts, "lifetimes" | "addressesLive"> {
  return {
    async lifetimes(accountId) {
      return sql(
        `SELECT host, worked_ms AS workedMs, ended_ms AS endedMs FROM lifetimes
         WHERE origin = (SELECT origin FROM accounts WHERE id = ?) ORDER BY host`,
      ).all(accountId) as Awaited<ReturnType<Accounts["lifetimes"]>>;
    },

    async addressesLive(accountId, { host, workedMs, endedMs }) {
      sql(
        `INSERT INTO lifetimes SELECT origin, ?, ?, ? FROM accounts WHERE id = ?
         ON CONFLICT DO UPDATE SET worked_ms = excluded.worked_ms, ended_ms = excluded.ended_ms`,
      ).run(host, workedMs, endedMs, accountId);
    },
  };
}
