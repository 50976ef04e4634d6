/** Plans of the service and their request limits. Other plan names may appear: they are read as unknown. */
export const plans = ["Starter", "Pro", "Enterprise"] as const;
export type PlanName = (typeof plans)[number];

export interface PlanLimits {
  /** Requests in any minute; null is unlimited. */
  perMinute: number | null;
  /** Requests in any 24 hours; null is unlimited. */
  perDay: number | null;
}

export const planLimits: Readonly<Record<PlanName, PlanLimits>> = {
  Starter: { perMinute: 30, perDay: 1_000 },
  Pro: { perMinute: 60, perDay: 10_000 },
  Enterprise: { perMinute: null, perDay: null },
};

/** The limits of a plan by name. An unknown plan gets the smallest limits, the only safe choice. */
export function limitsOf(plan: string): PlanLimits & { known: boolean } {
  const known = (plans as readonly string[]).includes(plan);
  return { ...planLimits[known ? (plan as PlanName) : "Starter"], known };
}

/** States of a subscription. Apart from the schemas, because commands that start fast name them too. */
export const subscriptionStatuses = ["active", "canceled", "past_due"] as const;
export type SubscriptionStatus = (typeof subscriptionStatuses)[number];
