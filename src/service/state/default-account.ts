import { sandboxKey } from "../../api/key.js";
import type { PlanName } from "../../api/plans.js";
import type { Random } from "../../clock.js";
import type { SqliteState } from "./sqlite-state.js";
import { keyHash, periodMs, toMicro } from "./state.js";

/** Credits that a month of each plan includes. The service's page does not say; these are the sandbox's own. */
export const creditsPerMonth: Readonly<Record<PlanName, number>> = {
  Starter: 500,
  Pro: 2_000,
  Enterprise: 20_000,
};

export interface DefaultAccount {
  plan: PlanName | undefined;
  /** Used only when the account is first made. */
  credits: number | undefined;
}

/**
 * Ensures that the state has an account for the public key, and returns the secret that signs its output URLs. A new
 * account has an active subscription; of one that exists, only a plan that was asked for is changed.
 */
export function ensureDefaultAccount(
  state: SqliteState,
  random: Random,
  now: number,
  wanted: DefaultAccount,
): string {
  return state.transact(() => {
    const existing = state.keyByHash(keyHash(sandboxKey));
    const account = existing && state.account(existing.accountId);
    if (!account) makeAccount(state, random, now, wanted);
    else if (wanted.plan) state.setPlan(account.id, wanted.plan, creditsPerMonth[wanted.plan]);
    return signingSecret(state, random);
  });
}

function makeAccount(state: SqliteState, random: Random, now: number, wanted: DefaultAccount): void {
  const plan = wanted.plan ?? "Pro";
  const id = random.uuid();
  state.saveAccount({
    id,
    email: "sandbox@localhost.invalid",
    name: "Sandbox",
    balanceMicro: toMicro(wanted.credits ?? 500),
    subscriptionStatus: "active",
    plan,
    creditsPerMonth: creditsPerMonth[plan],
    billingInterval: "month",
    periodEnd: now + periodMs.month,
    cancelAtPeriodEnd: false,
    admitted: 0,
  });
  state.saveKey({
    id: random.uuid(),
    accountId: id,
    hash: keyHash(sandboxKey),
    name: "sandbox",
    createdAt: now,
  });
}

export function signingSecret(state: SqliteState, random: Random): string {
  const kept = state.setting("signing secret");
  if (kept) return kept;
  const made = random.uuid() + random.uuid();
  state.saveSetting("signing secret", made);
  return made;
}
