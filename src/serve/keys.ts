import { isKeyForm, keyPrefix } from "../api/key.js";
import type { PlanName } from "../api/plans.js";
import type { Random } from "../clock.js";
import { AdminProblem } from "../service/admin/accounts.js";
import { checkedName } from "../service/admin/keys.js";
import type { SqliteState } from "../service/state/sqlite-state.js";
import { fromMicro, keyHash, periodMs, toMicro } from "../service/state/state.js";
import type { KeyBudget } from "../service/world/present.js";

/** Keys of a served service: each has an account, a plan and budgets of its own. Only their hashes are kept. */

const schema = `
create index if not exists tasks_by_key on tasks (key_id, created_at);
create table if not exists budgets (
  key_id text primary key, month_micro integer, day_micro integer
) strict, without rowid;
`;

/** The balance of an account without a limit, in credits; it is filled up whenever the service starts. */
const unlimitedCredits = 1_000_000;

export interface KeySettings {
  name: string;
  plan: PlanName;
  /** What the key may spend in all; null for no limit. */
  credits: number | null;
  /** What it may spend from the first of a month (UTC) to its end; null for no limit. */
  perMonth: number | null;
  /** What it may spend on a day (UTC); null for no limit. */
  perDay: number | null;
}

export interface ListedKey {
  id: string;
  name: string;
  plan: PlanName;
  createdAt: number;
  revokedAt: number | null;
  requests: number;
  /** Credits. */
  used: number;
  /** What it may still spend in all; null for no limit. */
  balance: number | null;
  perMonth: number | null;
  perDay: number | null;
}

/** A key with what it may still spend now. */
export interface KeyWithLeft extends Omit<ListedKey, "balance"> {
  left: {
    /** Null for no limit. */
    credits: number | null;
    /** Of how many in a day or a month, and when the next one begins; null if what it has in all is less. */
    of: number | null;
    per: KeyBudget["per"] | null;
    renewsAt: number | null;
  };
}

/** Letters and digits only: the form of all keys. */
function newKey(random: Random): string {
  const letters = `${random.uuid()}${random.uuid()}`.replaceAll("-", "").slice(0, 32);
  const key = `${keyPrefix}${letters}`;
  if (!isKeyForm(key)) throw new Error("the new key has not the form of one");
  return key;
}

export class ServedKeys {
  constructor(
    private readonly state: SqliteState,
    private readonly random: Random,
  ) {
    state.db.exec(schema);
  }

  /** The name for a new key, without spaces around it. Throws AdminProblem if no key may be called that, or a good one is. */
  freeName(askedFor: string): string {
    const name = checkedName(askedFor);
    if (this.list().some((known) => known.name === name && known.revokedAt === null))
      throw new AdminProblem(`there is a key ${JSON.stringify(name)} already; choose another name`);
    return name;
  }

  /** Makes a key and returns it: it is shown only now. */
  create(settings: KeySettings, now: number, key = newKey(this.random)): string {
    const { random, state } = this;
    const { name, plan, credits, perMonth, perDay } = settings;
    state.transact(() => {
      const [accountId, keyId] = [random.uuid(), random.uuid()];
      this.saveAccount({ id: accountId, name, plan, credits, perMonth }, now);
      state.saveKey({ id: keyId, accountId, hash: keyHash(key), name, createdAt: now });
      state.db
        .prepare("insert into budgets (key_id, month_micro, day_micro) values (?, ?, ?)")
        .run(keyId, microOrNull(perMonth), microOrNull(perDay));
    });
    return key;
  }

  /**
   * The one key of a service that belongs to one workspace. The account is made once; if the workspace has another key since, as
   * after a move, the account goes on with it.
   */
  own({ key, userId, name }: { key: string; userId: string; name: string }, now: number): void {
    const { state } = this;
    if (state.keyByHash(keyHash(key))) return;
    state.transact(() => {
      const accountId = state.setting("own account");
      if (accountId === undefined) {
        this.saveAccount({ id: userId, name, plan: "Enterprise", credits: null, perMonth: null }, now);
        state.saveSetting("own account", userId);
      }
      state.saveKey({
        id: this.random.uuid(),
        accountId: accountId ?? userId,
        hash: keyHash(key),
        name: this.numbered(name),
        createdAt: now,
      });
    });
  }

  /** The name, with a number if a good key has it: `this workspace 2`. */
  private numbered(name: string): string {
    const taken = new Set(this.list().flatMap((known) => (known.revokedAt === null ? [known.name] : [])));
    let free = name;
    for (let number = 2; taken.has(free); number++) free = `${name} ${number}`;
    return free;
  }

  /** A new account. */
  private saveAccount(account: Omit<KeySettings, "perDay"> & { id: string }, now: number): void {
    const { id, name, plan, credits, perMonth } = account;
    this.state.saveAccount({
      id,
      email: `${id}@localhost.invalid`,
      name,
      balanceMicro: toMicro(credits ?? unlimitedCredits),
      subscriptionStatus: "active",
      plan,
      creditsPerMonth: monthly(perMonth),
      billingInterval: "month",
      periodEnd: now + periodMs.month,
      cancelAtPeriodEnd: false,
      admitted: 0,
    });
    if (credits === null) this.state.saveSetting(`unlimited ${id}`, "1");
  }

  /** Fills up the accounts without a limit. */
  fillUp(): void {
    this.state.db
      .prepare(
        `update accounts set balance_micro = max(balance_micro, ?)
         where exists (select 1 from settings where settings.name = 'unlimited ' || accounts.id)`,
      )
      .run(toMicro(unlimitedCredits));
  }

  list(): ListedKey[] {
    const rows = this.state.db
      .prepare(
        `select keys.id, keys.name, plan, created_at as createdAt, revoked_at as revokedAt, requests_count as requests,
           used_micro as used, balance_micro as balance, month_micro as perMonth, day_micro as perDay,
           settings.name is not null as unlimited
         from keys join accounts on accounts.id = account_id left join budgets on key_id = keys.id
           left join settings on settings.name = 'unlimited ' || account_id order by created_at, keys.id`,
      )
      .all() as (ListedKey & { unlimited: number })[];
    return rows.map(({ unlimited, ...row }) => ({
      ...row,
      used: fromMicro(row.used),
      balance: unlimited === 1 ? null : fromMicro(row.balance ?? 0),
      perMonth: row.perMonth === null ? null : fromMicro(row.perMonth),
      perDay: row.perDay === null ? null : fromMicro(row.perDay),
    }));
  }

  /**
   * Changes the key with this id; what is not named stays. The service reads budgets and plan with each request. Credits in all
   * include what the key has spent already.
   */
  edit(id: string, change: Partial<Omit<KeySettings, "name">>): void {
    const { state } = this;
    state.transact(() => {
      const key = this.list().find((known) => known.id === id);
      if (!key) throw new Error(`there is no key ${id}`);
      const { plan, perMonth, perDay } = { ...key, ...change };
      const { accountId } = state.db
        .prepare("select account_id as accountId from keys where id = ?")
        .get(id) as {
        accountId: string;
      };
      state.setPlan(accountId, plan, monthly(perMonth));
      state.db
        .prepare("insert or replace into budgets (key_id, month_micro, day_micro) values (?, ?, ?)")
        .run(id, microOrNull(perMonth), microOrNull(perDay));
      if (change.credits === undefined) return;
      this.setCredits(accountId, change.credits === null ? null : Math.max(0, change.credits - key.used));
    });
  }

  /** What an account may still spend in all; null for no limit. */
  private setCredits(accountId: string, left: number | null): void {
    const { state } = this;
    state.db
      .prepare<unknown[]>("update accounts set balance_micro = ? where id = ?")
      .run(toMicro(left ?? unlimitedCredits), accountId);
    if (left === null) state.saveSetting(`unlimited ${accountId}`, "1");
    else state.db.prepare<unknown[]>("delete from settings where name = ?").run(`unlimited ${accountId}`);
  }

  /** Whether a key of that name or id was there and good until now. */
  revoke(nameOrId: string, now: number): boolean {
    const { changes } = this.state.db
      .prepare("update keys set revoked_at = ? where (name = ? or id = ?) and revoked_at is null")
      .run(now, nameOrId, nameOrId);
    return changes > 0;
  }

  /** The keys with what each may still spend now: under its tightest budget, if that is less than what it has in all. */
  withLeft(now: number): KeyWithLeft[] {
    return this.list().map(({ balance, ...key }) => {
      const budget = this.budget(key.id, now);
      const credits = budget && fromMicro(budget.leftMicro);
      if (budget === null || credits === null || (balance !== null && balance <= credits))
        return { ...key, left: { credits: balance, of: null, per: null, renewsAt: null } };
      const { ofMicro, per, renewsAt } = budget;
      return { ...key, left: { credits, of: fromMicro(ofMicro), per, renewsAt } };
    });
  }

  /** What is left of a key's month or day, whichever is less; null if it has no such budget. */
  budget(keyId: string, now: number): KeyBudget | null {
    const row = this.state.db
      .prepare("select month_micro as month, day_micro as day from budgets where key_id = ?")
      .get(keyId) as { month: number | null; day: number | null } | undefined;
    const date = new Date(now);
    const month = Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
    const nextMonth = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
    const day = Math.floor(now / dayMs) * dayMs;
    const budgets = [
      this.left(keyId, "month", row?.month ?? null, month, nextMonth),
      this.left(keyId, "day", row?.day ?? null, day, day + dayMs),
    ].filter((budget) => budget !== null);
    return budgets.toSorted((one, other) => one.leftMicro - other.leftMicro)[0] ?? null;
  }

  private left(
    keyId: string,
    per: KeyBudget["per"],
    ofMicro: number | null,
    since: number,
    renewsAt: number,
  ): KeyBudget | null {
    if (ofMicro === null) return null;
    const { spent } = this.state.db
      .prepare(
        "select coalesce(sum(cost_micro), 0) as spent from tasks where key_id = ? and created_at >= ? and refunded = 0",
      )
      .get(keyId, since) as { spent: number };
    return { leftMicro: Math.max(0, ofMicro - spent), ofMicro, per, renewsAt };
  }
}

const dayMs = 24 * 60 * 60 * 1_000;

/** The credits that an account gets in a month, as it is shown, in whole credits: nothing, if it has no budget of a month. */
function monthly(perMonth: number | null): number {
  return Math.floor(perMonth ?? 0);
}

function microOrNull(credits: number | null): number | null {
  return credits === null ? null : toMicro(credits);
}
