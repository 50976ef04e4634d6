/**
 * running: its process is alive, or was when the daemon died. waiting: it continues at its `resumeAt`. ended: with an exit code.
 * skipped: it came due while the previous run was in progress. missed: no daemon ran, and it is not caught up.
 */
export const scheduledRunStates = ["running", "waiting", "ended", "skipped", "missed"] as const;
export type ScheduledRunState = (typeof scheduledRunStates)[number];

/** What happens to runs that were due while the daemon was off: they are caught up once, with the latest, or skipped. */
export const missedChoices = ["once", "skip"] as const;
export type MissedChoice = (typeof missedChoices)[number];
