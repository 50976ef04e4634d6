import type { PlanLimits } from "../../api/plans.js";
import { planLimits } from "../../api/plans.js";
import type { Clock } from "../../clock.js";
import { modelOfGroup, ownModelsOrigin } from "../../core/identity.js";
import { type Credits, noCredits } from "../../core/money.js";
import { observationsMax } from "../../core/pace/pace.js";
import { type Account, OtherUser } from "../../core/ports/accounts.js";
import type { BalanceMark, SpendLogOwner, TakenCredits } from "../../core/ports/spend-log.js";
import type { Day, OwnLimits } from "../../core/quota/quota.js";
import type { Sqlite } from "../../sqlite.js";
import { sqliteDatabase } from "../on-sqlite.js";
import { type Defer, openDatabase } from "../open.js";
import type { Database, Queries, Script } from "../script.js";
import { type AccountRow, accountsMigrations } from "./accounts-schema.js";
import { ledgerMethods } from "./ledger.js";
import { placeMethods } from "./places.js";
import { spendLogOf } from "./spend-log.js";
import { spentOn, spentSoFar, takenFrom } from "./spending.js";
import { accountRow } from "./windows.js";

/** Opens the database that all workspaces of this user share. Throws NewerDatabase, or SQLite's error. */
export function openAccounts(path: string, clock: Clock): Accounts {
  return accountsOn(openDatabase(path, accountsMigrations), clock);
}

/** The accounts in an open SQLite database with the newest schema. */
export function accountsOn(db: Sqlite, clock: Clock, defer?: Defer): Accounts {
  const connection = sqliteDatabase(db, clock, defer);
  return {
    ...accountMethods(connection),
    close: () => connection.close(),
  };
}

/**
 * What workspaces and processes on this machine share: which key belongs to which account, and the account's request
 * ledger. Every method is one transaction.
 */
export type Accounts = ReturnType<typeof accountMethods> & { close(): Promise<void> };

/** The accounts in an open database of either kind. */
export function accountMethods(connection: Database) {
  const { sql, atomic, read, clock } = connection;
  /** The user's own limits of this process, by account. */
  const own = new Map<number, OwnLimits>();

  return {
    /** The account of a key; a new unnamed account if the key was never seen before. */
    accountOf: async (origin: string, fingerprint: string): Promise<Account> =>
      atomic(function* () {
        const known = (yield* sql(
          "SELECT a.* FROM keys k JOIN accounts a ON a.id = k.account_id WHERE k.origin = ? AND k.fingerprint = ?",
        ).get(origin, fingerprint)) as AccountRow | undefined;
        if (known) {
          yield* takeStrays(sql, known, fingerprint);
          return asAccount(known);
        }
        const most = planLimits.Starter;
        const id = yield* sql(
          "INSERT INTO accounts (origin, limit_minute, limit_day) VALUES (?, ?, ?)",
        ).insert(origin, most.perMinute, most.perDay);
        yield* sql("INSERT INTO keys (origin, fingerprint, account_id) VALUES (?, ?, ?)").run(
          origin,
          fingerprint,
          id,
        );
        yield* takeStrays(sql, { id, origin }, fingerprint);
        return { id, origin, userId: null };
      }),

    /**
     * GET me has named the user: names the account, or joins it to the account that already has this name. Throws
     * OtherUser if the account has another name.
     */
    async name(accountId: number, userId: string): Promise<Account> {
      const account = await atomic(() => name(sql, accountId, userId));
      const limits = own.get(accountId);
      if (limits !== undefined) own.set(account.id, limits);
      return account;
    },

    /** Sets the limits of the plan, for all processes; null means unlimited. */
    setLimits: async (accountId: number, limits: PlanLimits): Promise<void> =>
      atomic(() => setLimits(sql, accountId, limits)),

    /**
     * The user's own limits, which this process keeps to from then on, whatever the plan is, in place of those before. They
     * are not stored: another command has others, or none.
     */
    async narrowLimits(accountId: number, limits: OwnLimits): Promise<void> {
      own.set(accountId, limits);
    },

    ...ledgerMethods(connection, own),

    ...placeMethods(connection),

    /** Stores the charge of a generation in its price group. */
    // What models of a file cost is what the file says, and models of another file may have the same names.
    charged: async (accountId: number, group: string, amount: Credits): Promise<void> =>
      atomic(function* () {
        yield* sql(
          `INSERT INTO charges SELECT origin, ?, ? FROM accounts WHERE id = ? AND origin <> '${ownModelsOrigin}'
           ON CONFLICT (origin, price_group) DO UPDATE SET highest = max(charges.highest, excluded.highest)`,
        ).run(group, amount, accountId);
      }),

    /** The list prices of models, as the service has just told them. A charge below a list price that has risen is forgotten. */
    listed: async (accountId: number, prices: ReadonlyMap<string, Credits>): Promise<void> =>
      atomic(function* () {
        const { origin } = yield* accountRow(sql, accountId);
        const known = (yield* sql("SELECT model, price FROM list_prices WHERE origin = ?").all(origin)) as {
          model: string;
          price: Credits;
        }[];
        const before = new Map(known.map(({ model, price }) => [model, price]));
        const risen = new Map<string, Credits>();
        for (const [model, price] of prices) {
          const last = before.get(model);
          if (last === price) continue;
          if (last !== undefined && last < price) risen.set(model, price);
          yield* sql(
            `INSERT INTO list_prices VALUES (?, ?, ?)
             ON CONFLICT (origin, model) DO UPDATE SET price = excluded.price`,
          ).run(origin, model, price);
        }
        if (risen.size > 0) yield* forgetBelow(sql, origin, risen);
      }),

    /** Requests for these models leave out these defaults, because the service does not take them now. */
    leftOut: async (accountId: number, params: Readonly<Record<string, readonly string[]>>): Promise<void> =>
      atomic(function* () {
        const { origin } = yield* accountRow(sql, accountId);
        for (const [model, keys] of Object.entries(params))
          for (const key of keys)
            yield* sql(
              "INSERT INTO left_out VALUES (?, ?, ?) ON CONFLICT (origin, model, param) DO NOTHING",
            ).run(origin, model, key);
      }),

    /** The defaults that requests of this machine have ever left out, by model of the account's service. */
    everLeftOut: (accountId: number): Promise<Map<string, Set<string>>> =>
      read(function* () {
        const rows = (yield* sql(
          "SELECT model, param FROM left_out WHERE origin = (SELECT origin FROM accounts WHERE id = ?)",
        ).all(accountId)) as { model: string; param: string }[];
        const all = new Map<string, Set<string>>();
        for (const { model, param } of rows) all.set(model, (all.get(model) ?? new Set()).add(param));
        return all;
      }),

    /** The highest charge seen for each price group of the account's service. */
    highestCharges: (accountId: number): Promise<Map<string, Credits>> =>
      read(function* () {
        const rows = (yield* sql(
          `SELECT price_group, highest FROM charges
           WHERE origin = (SELECT origin FROM accounts WHERE id = ?) AND origin <> '${ownModelsOrigin}'`,
        ).all(accountId)) as { price_group: string; highest: number }[];
        return new Map(rows.map((row) => [row.price_group, row.highest as Credits]));
      }),

    /** One generation of a model with its params took this long (ms). */
    // For each model with its params, only as many durations are kept as an estimate uses.
    lasted: async (
      accountId: number,
      { model, group }: { model: string; group: string },
      ms: number,
    ): Promise<void> =>
      atomic(
        function* () {
          yield* sql(
            `INSERT INTO durations (origin, model, price_group, ms, at)
           SELECT origin, @model, @group, @ms, @at FROM accounts WHERE id = @accountId`,
          ).run({ accountId, model, group, ms: Math.round(ms), at: clock.now() });
          yield* sql(
            `DELETE FROM durations WHERE ${ofAccount} AND id <= (
             SELECT id FROM durations WHERE ${ofAccount} ORDER BY id DESC LIMIT 1 OFFSET ${observationsMax})`,
          ).run({ accountId, model, group });
        },
        { part: {} },
      ),

    /** How long generations of these models took at the account's service, oldest first. */
    durations: (
      accountId: number,
      models: readonly string[],
    ): Promise<{ model: string; group: string; ms: number }[]> =>
      read(function* () {
        return (yield* sql(
          `SELECT model, price_group AS "group", ms FROM durations
         WHERE origin = (SELECT origin FROM accounts WHERE id = ?) AND model IN (SELECT value FROM json_each(?)) ORDER BY id`,
        ).all(accountId, JSON.stringify(models))) as { model: string; group: string; ms: number }[];
      }),

    /**
     * What the paid requests of a day have cost or may have cost, for all keys of the account and from all workspaces.
     */
    async spentOn(accountId: number, day: Day): Promise<Credits> {
      // A run asks at every turn, and writes only where a clock was ahead.
      const { credits, hasNew } = await read(() => spentSoFar(sql, accountId, day));
      return hasNew ? atomic(() => spentOn(sql, accountId, day)) : credits;
    },
    /** What they have taken, or may have taken, from the balance since that reading. */
    takenFrom: (accountId: number, mark: BalanceMark): Promise<TakenCredits> =>
      read(() => takenFrom(sql, accountId, mark)),

    /** The spend log of a known key. */
    spendLog: (owner: SpendLogOwner) => spendLogOf(connection, owner),
  };
}

const ofAccount =
  "origin = (SELECT origin FROM accounts WHERE id = @accountId) AND model = @model AND price_group = @group";

function* setLimits(sql: Queries, accountId: number, { perMinute, perDay }: PlanLimits): Script<void> {
  yield* sql("UPDATE accounts SET limit_minute = ?, limit_day = ? WHERE id = ?").run(
    perMinute,
    perDay,
    accountId,
  );
}

function* name(sql: Queries, accountId: number, userId: string): Script<Account> {
  const own = (yield* sql("SELECT * FROM accounts WHERE id = ?").get(accountId)) as AccountRow;
  if (own.user_id === userId) return asAccount(own);
  if (own.user_id !== null) throw new OtherUser(own.user_id, userId, own.origin);
  const other = (yield* sql("SELECT * FROM accounts WHERE origin = ? AND user_id = ?").get(
    own.origin,
    userId,
  )) as AccountRow | undefined;
  if (!other) {
    yield* sql("UPDATE accounts SET user_id = ? WHERE id = ?").run(userId, accountId);
    return { ...asAccount(own), userId };
  }
  yield* sql("UPDATE keys SET account_id = ? WHERE account_id = ?").run(other.id, accountId);
  yield* sql("UPDATE requests SET account_id = ? WHERE account_id = ?").run(other.id, accountId);
  yield* sql("UPDATE accounts SET sent = sent + ? WHERE id = ?").run(own.sent, other.id);
  const both = { from: accountId, to: other.id };
  yield* sql(
    "DELETE FROM owed WHERE account_id = @to AND run IN (SELECT run FROM owed WHERE account_id = @from)",
  ).run(both);
  yield* sql("UPDATE owed SET account_id = @to WHERE account_id = @from").run(both);
  yield* sql("DELETE FROM accounts WHERE id = ?").run(accountId);
  return asAccount(other);
}

/** Forgets the charges of models below their list prices: they are from before the prices rose. */
function* forgetBelow(sql: Queries, origin: string, prices: ReadonlyMap<string, Credits>): Script<void> {
  const rows = (yield* sql("SELECT price_group, highest FROM charges WHERE origin = ?").all(origin)) as {
    price_group: string;
    highest: Credits;
  }[];
  for (const { price_group: group, highest } of rows)
    if (highest < (prices.get(modelOfGroup(group)) ?? noCredits))
      yield* sql("DELETE FROM charges WHERE origin = ? AND price_group = ?").run(origin, group);
}

/**
 * Counts requests sent with the key to other paths of the same host, where the service has never answered, as requests
 * of this account: a mistyped base URL. The service may count them, and would then seem to be used from elsewhere.
 */
function* takeStrays(
  sql: Queries,
  { id, origin }: Pick<AccountRow, "id" | "origin">,
  fingerprint: string,
): Script<void> {
  const host = URL.canParse(origin) ? new URL(origin).origin : origin;
  const strays = (yield* sql(
    `SELECT k.origin, k.sent, a.id FROM keys k JOIN accounts a ON a.id = k.account_id
     WHERE (k.origin = @host OR k.origin > @host || '/' AND k.origin < @host || '0')
       AND k.fingerprint = @fingerprint AND k.origin <> @origin AND k.sent > 0
       AND a.user_id IS NULL AND k.counted IS NULL AND k.baseline IS NULL`,
  ).all({ host, fingerprint, origin })) as Pick<AccountRow, "origin" | "sent" | "id">[];
  const key = "origin = @origin AND fingerprint = @fingerprint";
  for (const stray of strays) {
    yield* sql(`UPDATE keys SET sent = 0 WHERE ${key}`).run({ origin: stray.origin, fingerprint });
    yield* sql(`UPDATE keys SET sent = sent + @sent WHERE ${key}`).run({
      origin,
      fingerprint,
      sent: stray.sent,
    });
    yield* sql("UPDATE requests SET account_id = ? WHERE account_id = ?").run(id, stray.id);
  }
}

function asAccount(row: AccountRow): Account {
  return { id: row.id, origin: row.origin, userId: row.user_id };
}
