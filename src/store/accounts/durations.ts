import { observationsMax } from "../../core/pace/pace.js";
import type { Accounts } from "../../core/ports/accounts.js";
import type { WorkspaceDatabase } from "../workspace/transition.js";

/** How long generations took: for each model with its params, as many as an estimate uses. */
export function durationMethods({
  sql,
  atomic,
  clock,
}: WorkspaceDatabase): Pick<Accounts, "lasted" | "durations"> {
  return {
    lasted: async (accountId, { model, group }, ms) =>
      atomic(() => {
        const { origin } = sql("SELECT origin FROM accounts WHERE id = ?").get(accountId) as {
          origin: string;
        };
        sql("INSERT INTO durations (origin, model, price_group, ms, at) VALUES (?, ?, ?, ?, ?)").run(
          origin,
          model,
          group,
          Math.round(ms),
          clock.now(),
        );
        sql(
          `DELETE FROM durations WHERE origin = ? AND model = ? AND price_group = ? AND id <= (SELECT id FROM durations
             WHERE origin = ? AND model = ? AND price_group = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
        ).run(origin, model, group, origin, model, group, observationsMax);
      }),

    async durations(accountId, models) {
      return sql(
        `SELECT model, price_group AS "group", ms FROM durations
         WHERE origin = (SELECT origin FROM accounts WHERE id = ?) AND model IN (SELECT value FROM json_each(?)) ORDER BY id`,
      ).all(accountId, JSON.stringify(models)) as { model: string; group: string; ms: number }[];
    },
  };
}
