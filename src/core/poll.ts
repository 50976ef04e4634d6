import { dayMs } from "./quota.js";

/**
 * When to look at a task: the documented schedule. First after 2 seconds, then at intervals growing to 10 seconds;
 * after 10 minutes the task is overdue, stays alive and is looked at rarely.
 */
export const pollMsMin = 2_000;
export const pollMsMax = 10_000;
export const pollWindowMs = 10 * 60_000;
const overdueMsMin = 5 * 60_000;
const overdueMsMax = 60 * 60_000;
const growth = 1.5;

/** Milliseconds from one look at a task to the next, after `looks` looks. */
export function pollInterval(looks: number): number {
  return Math.min(pollMsMax, pollMsMin * growth ** looks);
}

/** How many tasks are overdue, and the day's limit of requests that their looks come out of (null: none). */
export interface Overdue {
  tasks: number;
  perDay: number | null;
}

/** What share of the day's requests the looks at all overdue tasks together may take. */
const overdueShare = 0.1;
const overdueSpacingMax = 14 * dayMs;

/**
 * Milliseconds until an overdue task is looked at again: a fifth of its age, and never so soon that all of them
 * together take more than a tenth of the day's requests.
 */
export function overdueInterval(ageMs: number, { tasks, perDay }: Overdue): number {
  const own = Math.min(overdueMsMax, Math.max(overdueMsMin, ageMs / 5));
  if (perDay === null) return own;
  return Math.min(overdueSpacingMax, Math.max(own, (tasks * dayMs) / (perDay * overdueShare)));
}

/**
 * Whether the time in which a task is expected to end has passed. Where the clock was set back by more than that,
 * nobody knows, and looking rarely is the safe guess: looking often could go on for as long as the clock is behind.
 */
export function windowPassed(submittedAt: number, now: number): boolean {
  return Math.abs(now - submittedAt) >= pollWindowMs;
}
