import { type ExitName, exitCode } from "../core/exit.js";
import { inCredits, toNumber } from "../core/money.js";
import type { RunSummary } from "../job/run/summary.js";
import { shortText, terminalText } from "../text/terminal.js";

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

/** The facts of a notification, flat, for every format; null if unknown. */
export interface Notification {
  event: NotificationEvent;
  /** One line of text. */
  summary: string;
  /** Exit code; null if there was no run. */
  exit: number | null;
  schedule: string | null;
  /** When the scheduled run was due, ISO 8601. */
  due: string | null;
  run: number | null;
  job: string | null;
  items: number | null;
  archived: number | null;
  failed: number | null;
  held: number | null;
  creditsSpent: number | null;
  creditsLeft: number | null;
  folder: string | null;
  /** What to do now. */
  next: string | null;
}

const summaryCharactersMax = 500;

/** The end of a run; `message` says why a run that could not start has no facts. */
export function endNotification(exit: ExitName, facts: RunSummary | null, message: string): Notification {
  const counts = facts?.counts ?? {};
  const count = (state: keyof typeof counts) => (facts ? (counts[state] ?? 0) : null);
  const all = Object.values(counts).reduce((sum, number) => sum + number, 0) - (counts.dropped ?? 0);
  return {
    event: exit,
    summary: shortText(facts ? summary(exit, facts, all) : message, summaryCharactersMax),
    exit: exitCode(exit),
    schedule: null,
    due: null,
    run: facts?.run ?? null,
    job: facts ? terminalText(facts.job) : null,
    items: facts ? all : null,
    archived: count("archived"),
    failed: count("failed"),
    held: count("held"),
    creditsSpent: facts ? toNumber(facts.spent) : null,
    creditsLeft: facts?.left == null ? null : toNumber(facts.left),
    folder: facts?.folder ?? null,
    next: facts?.nextStep == null ? null : terminalText(facts.nextStep),
  };
}

/** What the daemon noticed about a scheduled run. */
export function scheduledRunNotification(
  event: "missed" | "skipped" | "lost" | "trouble",
  scheduledRun: { schedule: string; dueAt: number; message: string },
): Notification {
  return {
    event,
    exit: null,
    run: null,
    job: null,
    items: null,
    archived: null,
    failed: null,
    held: null,
    creditsSpent: null,
    creditsLeft: null,
    folder: null,
    next: null,
    summary: shortText(scheduledRun.message, summaryCharactersMax),
    schedule: scheduledRun.schedule,
    due: new Date(scheduledRun.dueAt).toISOString(),
  };
}

function summary(exit: ExitName, facts: RunSummary, all: number): string {
  const { counts, job, run, spent } = facts;
  const others = [
    counts.failed ? `, ${counts.failed} failed` : "",
    counts.held ? `, ${counts.held} held` : "",
  ].join("");
  return `${job}, run ${run}: ${counts.archived ?? 0} of ${all} archived${others}, ${inCredits(spent)} spent (${exit})`;
}
