/** The subject of a notification: how a run ended, or what the daemon noticed about a scheduled run. */
export const notificationEvents = [
  "done",
  "failed",
  "held",
  "cap",
  "credits",
  "unfinished",
  "key",
  "unreachable",
  "usage",
  "locked",
  "crash",
  "interrupted",
  "missed",
  "skipped",
  "lost",
  "trouble",
] as const;

export type NotificationEvent = (typeof notificationEvents)[number];
