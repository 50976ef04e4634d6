import type { PlanLimits } from "../../api/plans.js";
import { planLimits } from "../../api/plans.js";
import type { Clock } from "../../clock.js";
import type { Credits } from "../../core/money.js";
import { observationsMax } from "../../core/pace/pace.js";
import { type Account, type Accounts, OtherUser } from "../../core/ports/accounts.js";
import { narrowed } from "../../core/quota/quota.js";
import { type Sql, type Sqlite, statements } from "../../sqlite.js";
import { type Defer, groupCommits, openDatabase } from "../open.js";
import { type AccountRow, accountsMigrations } from "./accounts-schema.js";
import { ledgerMethods } from "./ledger.js";
import { spendLogOf } from "./spend-log.js";
import { spentOn, spentSoFar, takenFrom } from "./spending.js";
import { accountRow } from "./windows.js";

/** Opens the database that all workspaces of this user share. Throws NewerDatabase, or SQLite's error. */
export function openAccounts(path: string, clock: Clock): Accounts {
  return accountsOn(openDatabase(path, accountsMigrations), clock);
}

/** The accounts in an open database with the newest schema. */
export function accountsOn(db: Sqlite, clock: Clock, defer?: Defer): Accounts {
  const sql = statements(db);
  const { atomic, commit } = groupCommits(db, defer);
  const connection = { sql, atomic, clock };

  return {
    accountOf: async (origin, fingerprint) =>
      atomic(() => {
        const known = sql(
          "SELECT a.* FROM keys k JOIN accounts a ON a.id = k.account_id WHERE k.origin = ? AND k.fingerprint = ?",
        ).get(origin, fingerprint) as AccountRow | undefined;
        if (known) {
          takeStrays(sql, known, fingerprint);
          return asAccount(known);
        }
        const most = planLimits.Starter;
        const { lastInsertRowid } = sql(
          "INSERT INTO accounts (origin, limit_minute, limit_day) VALUES (?, ?, ?)",
        ).run(origin, most.perMinute, most.perDay);
        sql("INSERT INTO keys (origin, fingerprint, account_id) VALUES (?, ?, ?)").run(
          origin,
          fingerprint,
          lastInsertRowid,
        );
        const id = Number(lastInsertRowid);
        takeStrays(sql, { id, origin }, fingerprint);
        return { id, origin, userId: null };
      }),

    name: async (accountId, userId) => atomic(() => name(sql, accountId, userId)),

    setLimits: async (accountId, limits) => atomic(() => setLimits(sql, accountId, limits)),

    async narrowLimits(accountId, { rpm, rpd }) {
      if (rpm === undefined && rpd === undefined) return;
      await atomic(() => {
        const { limit_minute: perMinute, limit_day: perDay } = accountRow(sql, accountId);
        const limits = narrowed({ perMinute, perDay }, { ...(rpm ? { rpm } : {}), ...(rpd ? { rpd } : {}) });
        setLimits(sql, accountId, limits);
      });
    },

    ...ledgerMethods(connection),

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

    // For each model with its params, only as many durations are kept as an estimate uses.
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

    async spentOn(accountId, day) {
      // A run asks at every turn, and writes only where a clock was ahead.
      const { credits, hasNew } = spentSoFar(sql, accountId, day);
      return hasNew ? atomic(() => spentOn(sql, accountId, day)) : credits;
    },
    takenFrom: async (accountId, mark) => takenFrom(sql, accountId, mark),

    spendLog: (owner) => spendLogOf(connection, owner),

    close() {
      commit();
      db.close();
    },
  };
}

function setLimits(sql: Sql, accountId: number, { perMinute, perDay }: PlanLimits): void {
  sql("UPDATE accounts SET limit_minute = ?, limit_day = ? WHERE id = ?").run(perMinute, perDay, accountId);
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
  sql("UPDATE accounts SET sent = sent + ? WHERE id = ?").run(own.sent, other.id);
  sql("UPDATE OR REPLACE owed SET account_id = ? WHERE account_id = ?").run(other.id, accountId);
  sql("DELETE FROM accounts WHERE id = ?").run(accountId);
  return asAccount(other);
}

/**
 * Counts requests sent with the key to other paths of the same host, where the service has never answered, as requests
 * of this account: a mistyped base URL. The service may count them, and would then seem to be used from elsewhere.
 */
function takeStrays(sql: Sql, { id, origin }: Pick<AccountRow, "id" | "origin">, fingerprint: string): void {
  const host = URL.canParse(origin) ? new URL(origin).origin : origin;
  const strays = sql(
    `SELECT k.origin, k.sent, a.id FROM keys k JOIN accounts a ON a.id = k.account_id
     WHERE (k.origin = @host OR k.origin > @host || '/' AND k.origin < @host || '0')
       AND k.fingerprint = @fingerprint AND k.origin <> @origin AND k.sent > 0
       AND a.user_id IS NULL AND k.counted IS NULL AND k.baseline IS NULL`,
  ).all({ host, fingerprint, origin }) as Pick<AccountRow, "origin" | "sent" | "id">[];
  const key = "origin = @origin AND fingerprint = @fingerprint";
  for (const stray of strays) {
    sql(`UPDATE keys SET sent = 0 WHERE ${key}`).run({ origin: stray.origin, fingerprint });
    sql(`UPDATE keys SET sent = sent + @sent WHERE ${key}`).run({ origin, fingerprint, sent: stray.sent });
    sql("UPDATE requests SET account_id = ? WHERE account_id = ?").run(id, stray.id);
  }
}

function asAccount(row: AccountRow): Account {
  return { id: row.id, origin: row.origin, userId: row.user_id };
}
