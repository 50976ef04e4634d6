import { exitCode } from "../core/exit.js";
import { byHand, type ScheduledRun } from "../store/schedules.js";
import type { RunLine } from "../workspace/status.js";

/** Names a due time of a schedule. */
export function dueKey(schedule: string, dueAt: number): string {
  return `${schedule} ${dueAt}`;
}

/** The due time that a run was begun for; null if a person began it. */
export function dueOf({ run: { options } }: Pick<RunLine, "run">): string | null {
  const { schedule, due } = options.beganBy ?? {};
  return schedule === undefined || due === undefined ? null : dueKey(schedule, Date.parse(due));
}

/**
 * A scheduled run with the results of its run as they are now. The schedule recorded how its own process ended; a person
 * may have resumed the run since.
 */
export function withRunResults(scheduledRun: ScheduledRun, runs: readonly RunLine[]): ScheduledRun {
  const own = dueKey(scheduledRun.schedule, scheduledRun.dueAt);
  // Not by its number: the schedule may use another state now, in which the number is that of another run.
  const line = runs.find((each) => dueOf(each) === own);
  if (line === undefined) return scheduledRun;
  const { run, alive, spent, archived, failed, held } = line;
  // `schedule run` was killed before it could record the end. A daemon takes over what an earlier daemon has left.
  const isLeft = scheduledRun.state === "running" && scheduledRun.note === byHand && !alive;
  // It waits for a daemon, and a person has continued it.
  const isResumed = scheduledRun.state === "waiting" && (alive || run.state === "finished");
  if (scheduledRun.state !== "ended" && !isLeft && !isResumed) return scheduledRun;
  // A run that was started by hand reported its results only to the terminal.
  const known = {
    ...scheduledRun,
    run: run.id,
    credits: scheduledRun.credits ?? spent,
    archived: scheduledRun.archived ?? archived,
    failed: scheduledRun.failed ?? failed,
    held: scheduledRun.held ?? held,
  };
  if (alive) return { ...known, state: "running", resumeAt: null, note: "resumed" };
  const exit = run.exit === null ? null : exitCode(run.exit);
  const others = `${failed === 0 ? "" : `, ${failed} failed`}${held === 0 ? "" : `, ${held} held`}`;
  const result = `${archived} archived${others}`;
  if (isLeft) {
    const note = exit === null ? `its process was killed; ${result}` : result;
    return { ...known, state: "ended", exit, endedAt: run.endedAt, note };
  }
  if (exit === null || run.endedAt === null || run.endedAt <= (scheduledRun.endedAt ?? 0)) return known;
  return {
    ...known,
    state: "ended",
    resumeAt: null,
    exit,
    endedAt: run.endedAt,
    note: `resumed, ${result}`,
    credits: spent,
    archived,
    failed,
    held,
  };
}
