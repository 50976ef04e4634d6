import { sandboxKey } from "../../api/key.js";
import type { PlanName, SubscriptionStatus } from "../../api/plans.js";
import type { Clock, Random } from "../../clock.js";
import { creditsPerMonth, ensureDefaultAccount } from "../state/default-account.js";
import { accountColumns, accountOf, type ServiceAccountRow } from "../state/rows.js";
import { SqliteState } from "../state/sqlite-state.js";
import { type AccountRecord, asOf, keyHash, periodMs, toMicro } from "../state/state.js";

/** What administering accounts needs: the state that a sandbox serves, in this process or another. */
export interface Desk {
  state: SqliteState;
  clock: Clock;
  random: Random;
}

export interface DeskOptions {
  /** The SQLite file of the sandbox's state; made, with its first account, when it is not there. */
  file: string;
  clock: Clock;
  random: Random;
}

/**
 * Opens a state file for administration. The service reads accounts and keys with each request, so a sandbox that
 * serves the same file uses the changes from its next request on.
 */
export function openDesk({ file, clock, random }: DeskOptions): Desk & { close(): void } {
  const state = new SqliteState(file);
  ensureDefaultAccount(state, random, clock.now(), { plan: undefined, credits: undefined });
  return { state, clock, random, close: () => state.close() };
}

/** A request of an administrator that cannot be met; the message says what was expected and what was found. */
export class AdminProblem extends Error {
  override readonly name = "AdminProblem";
}

/** The changes of an account; other fields stay as they are. */
export interface AccountChange {
  name?: string;
  plan?: PlanName;
  /** The new balance, in credits. */
  credits?: number;
  subscription?: SubscriptionStatus | "none";
  billingInterval?: AccountRecord["billingInterval"];
  cancelAtPeriodEnd?: boolean;
  /** Milliseconds since 1970. */
  periodEnd?: number;
}

const emailPattern = /^[^\s@\p{C}]{1,64}@[^\s@\p{C}]{1,189}$/u;

/** All accounts, the sandbox's own first. */
export function listAccounts(desk: Desk): AccountRecord[] {
  const rows = desk.state.db.prepare(`select ${accountColumns} from accounts order by email`).all();
  const own = ownAccount(desk).id;
  return (rows as ServiceAccountRow[])
    .map((row) => asOf(accountOf(row), desk.clock.now()))
    .sort((left, right) => Number(right.id === own) - Number(left.id === own));
}

/** The account of this e-mail address, or the sandbox's own when none is named. Throws AdminProblem. */
export function findAccount(desk: Desk, email: string | undefined): AccountRecord {
  if (email === undefined) return ownAccount(desk);
  const account = withEmail(desk, email);
  if (account) return account;
  const known = listAccounts(desk).map((each) => each.email);
  throw new AdminProblem(`there is no user ${JSON.stringify(email)}; there is ${known.join(", ")}`);
}

/** Makes an account for another user: Pro, active and with 500 credits, like the sandbox's own. Throws AdminProblem. */
export function createAccount(desk: Desk, email: string, change: AccountChange): AccountRecord {
  const { state, clock, random } = desk;
  if (!emailPattern.test(email)) {
    throw new AdminProblem(
      `expected an e-mail address such as ana@example.com, got ${JSON.stringify(email)}`,
    );
  }
  return state.transact(() => {
    if (withEmail(desk, email)) throw new AdminProblem(`there is a user ${email} already`);
    const account: AccountRecord = {
      id: random.uuid(),
      email,
      name: null,
      balanceMicro: toMicro(500),
      subscriptionStatus: "active",
      plan: "Pro",
      creditsPerMonth: creditsPerMonth.Pro,
      billingInterval: "month",
      periodEnd: clock.now() + periodMs.month,
      cancelAtPeriodEnd: false,
      admitted: 0,
    };
    state.saveAccount(account);
    return changeAccount(desk, account.id, change);
  });
}

/** Makes the changes at once, and returns the changed account. */
export function changeAccount(desk: Desk, accountId: string, change: AccountChange): AccountRecord {
  return desk.state.transact(() => {
    const stored = desk.state.account(accountId);
    if (!stored) throw new AdminProblem(`there is no account ${accountId}`);
    const now = desk.clock.now();
    const after = changed(asOf(stored, now), change, now);
    desk.state.db
      .prepare<unknown[]>(`update accounts set name = ?, balance_micro = ?, subscription_status = ?, plan = ?,
        credits_per_month = ?, billing_interval = ?, period_end = ?, cancel_at_period_end = ? where id = ?`)
      .run(
        after.name,
        after.balanceMicro,
        after.subscriptionStatus,
        after.plan,
        after.creditsPerMonth,
        after.billingInterval,
        after.periodEnd,
        Number(after.cancelAtPeriodEnd),
        accountId,
      );
    return asOf(after, now);
  });
}

function changed(account: AccountRecord, change: AccountChange, now: number): AccountRecord {
  const after = { ...account };
  if (change.name !== undefined) after.name = change.name.trim() || null;
  if (change.credits !== undefined) after.balanceMicro = toMicro(change.credits);
  if (change.plan !== undefined) {
    after.plan = change.plan;
    after.creditsPerMonth = creditsPerMonth[change.plan];
  }
  if (change.billingInterval !== undefined) {
    after.billingInterval = change.billingInterval;
    after.periodEnd = now + periodMs[after.billingInterval];
  }
  if (change.subscription !== undefined) {
    after.subscriptionStatus = change.subscription === "none" ? null : change.subscription;
    // Reactivating a subscription after its period has ended starts a new period.
    if (change.subscription === "active" && after.periodEnd <= now) {
      after.periodEnd = now + periodMs[after.billingInterval];
      after.cancelAtPeriodEnd = false;
    }
  }
  if (change.cancelAtPeriodEnd !== undefined) after.cancelAtPeriodEnd = change.cancelAtPeriodEnd;
  if (change.periodEnd !== undefined) after.periodEnd = change.periodEnd;
  return after;
}

function ownAccount({ state, clock }: Desk): AccountRecord {
  const account = state.account(state.keyByHash(keyHash(sandboxKey))?.accountId ?? "");
  if (!account) throw new Error("this state has no account for the sandbox's own key");
  return asOf(account, clock.now());
}

function withEmail({ state, clock }: Desk, email: string): AccountRecord | undefined {
  const byEmail = `select ${accountColumns} from accounts where lower(email) = lower(?)`;
  const row = state.db.prepare<[string]>(byEmail).get(email);
  return row === undefined ? undefined : asOf(accountOf(row as ServiceAccountRow), clock.now());
}
