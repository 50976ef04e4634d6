/** States of a subscription. Apart from the schemas, because commands that start fast name them too. */
export const subscriptionStatuses = ["active", "canceled", "past_due"] as const;
