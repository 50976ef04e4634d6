import type { AccountRecord } from "./state.js";

const dayMs = 24 * 60 * 60 * 1_000;

/** How long a period of a subscription lasts. */
export const periodMs: Readonly<Record<AccountRecord["billingInterval"], number>> = {
  month: 30 * dayMs,
  year: 365 * dayMs,
};

/**
 * The account with its subscription as it is at `now`. Periods end by the clock alone: an active subscription is
 * renewed for all periods that have passed, or has ended if it was to be canceled.
 */
export function asOf(account: AccountRecord, now: number): AccountRecord {
  const { subscriptionStatus, periodEnd, cancelAtPeriodEnd } = account;
  if (subscriptionStatus !== "active" || now < periodEnd) return account;
  if (cancelAtPeriodEnd) return { ...account, subscriptionStatus: "canceled" };
  const period = periodMs[account.billingInterval];
  return { ...account, periodEnd: periodEnd + Math.ceil((now - periodEnd + 1) / period) * period };
}
