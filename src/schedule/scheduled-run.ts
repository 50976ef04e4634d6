import { resolve } from "node:path";
import { EarlyExit, exitCode, exitNameOf } from "../core/exit.js";
import { inCredits, toNumber } from "../core/money.js";
import { boundedLiquid } from "../manifest/templates/template.js";
import { ownVariables } from "../shell.js";
import type { Schedule, ScheduledRun } from "../store/schedules.js";
import type { Environment } from "../text/environment.js";
import { sandboxFlag, shellWord } from "../text/shell.js";
import { nextDue, timeIn } from "./due.js";

/** The value of a schedule's flag: "" for a flag without a value, null when it is not set. */
export function flagOf({ flags }: Pick<Schedule, "flags">, name: string): string | null {
  const flag = flags.find(([known]) => known === name);
  return flag ? (flag[1] ?? "") : null;
}

/**
 * When a scheduled run stops submitting (UTC ms): the first `--until` after its due time, in the zone of the schedule.
 */
export function scheduledEnd(schedule: Pick<Schedule, "flags" | "zone">, dueAt: number): number | null {
  const until = flagOf(schedule, "--until");
  if (until === null) return null;
  const [hour = "", minute = ""] = until.split(":");
  return nextDue({ cron: `${Number(minute)} ${Number(hour)} * * *`, zone: schedule.zone }, dueAt);
}

/**
 * The edition of a scheduled run; null when the job has only one. It depends on the due time, not on the time of the
 * start: a run that is started again, or caught up a day late, makes the same edition.
 * Throws EarlyExit for a template that cannot be filled in.
 */
export function scheduledEdition(
  schedule: Pick<Schedule, "flags" | "zone" | "name">,
  dueAt: number,
): string | null {
  // To the minute, in UTC: due times stay distinct when clocks are put back an hour.
  if (flagOf(schedule, "--fresh") !== null) return `${new Date(dueAt).toISOString().slice(0, 16)}Z`;
  const template = flagOf(schedule, "--edition");
  if (template === null) return null;
  const { date, time } = timeIn(dueAt, schedule.zone);
  const engine = boundedLiquid();
  try {
    return engine.parseAndRenderSync(template, { date, time, schedule: schedule.name });
  } catch (error) {
    throw new EarlyExit(
      "usage",
      `--edition: expected a name, which may contain {{ date }}, {{ time }} and {{ schedule }}, got ${JSON.stringify(template)}: ${(error as Error).message}`,
    );
  }
}

/** The command, the arguments and the variables of a scheduled run's process. */
export interface ScheduledCommand {
  command: "run" | "resume";
  words: string[];
  /** From these the process knows its schedule and due time, for its notifications. */
  variables: Readonly<Record<(typeof ownVariables)["schedule" | "due"], string>>;
}

/** The schedule and due time of this process; null when a person started it. */
export function scheduledIn(environment: Environment): {
  schedule: string | null;
  due: string | null;
} {
  return { schedule: environment[ownVariables.schedule] || null, due: environment[ownVariables.due] || null };
}

/** Flags that `resume` takes too; the run itself keeps the others. The caps are those of the schedule as it is now. */
const carried = [
  "--max-price",
  "--max-credits",
  "--max-credits-per-model",
  "--max-credits-per-day",
  "--keep-credits",
  "--sandbox",
  "--models",
  "--base-url",
  "--api-key-file",
  "--database-url",
  "--log-level",
  "--log-format",
  "--unreachable-wait",
  "--gallery",
  "--work",
  "--no-work",
  "--if-locked",
  "--accept-foreign-use",
  "--notify",
  "--notify-command",
  "--smtp-url",
  "--smtp-from",
  "--publish",
  "--publish-command",
  "--publish-for",
];
/** Flags whose values depend on the due time. */
const filledIn = ["--until", "--fresh", "--edition"];

/**
 * The first start reads the manifest. Once the run is known, it is resumed as planned, even without the manifest.
 * `--until` becomes an instant, so that a late start does not move it.
 */
export function scheduledCommand(
  schedule: Schedule,
  scheduledRun: Pick<ScheduledRun, "dueAt" | "run">,
): ScheduledCommand {
  const resumes = scheduledRun.run !== null;
  const variables = {
    [ownVariables.schedule]: schedule.name,
    [ownVariables.due]: new Date(scheduledRun.dueAt).toISOString(),
  };
  const flags = schedule.flags.filter(([name]) =>
    resumes ? carried.includes(name) : !filledIn.includes(name),
  );
  const words = flags.flatMap(([name, value]) => (value === undefined ? [name] : [`${name}=${value}`]));
  // Wait for another run of the workspace, whether a person or a schedule started it.
  if (flagOf(schedule, "--if-locked") === null) words.push("--if-locked=wait");
  // Also given to a run that continues. Otherwise it would count as continued by a person, for whom a time that has
  // passed does not end the run.
  const end = scheduledEnd(schedule, scheduledRun.dueAt);
  if (end !== null) words.push(`--until=${new Date(end).toISOString()}`);
  // Whoever added the schedule agreed to its runs, on whichever machine its daemon is now.
  if (resumes) return { command: "resume", words: [...words, "--yes", String(scheduledRun.run)], variables };
  const edition = scheduledEdition(schedule, scheduledRun.dueAt);
  if (edition !== null) words.push(`--edition=${edition}`);
  return { command: "run", words: [...words, "--yes", "--", schedule.manifest], variables };
}

/** How the process of a scheduled run ended. */
export interface ScheduledRunEnd
  extends Pick<ScheduledRun, "exit" | "run" | "credits" | "archived" | "failed" | "held" | "resumeAt"> {
  /** One line. */
  note: string;
}

/** Time until a run whose process was lost continues (ms), and how often it does. */
const lostMs = 60_000;
const lossesMax = 2;

/** Why a run that was begun under other circumstances, or by a schedule that is gone, has ended. */
export function endNote(what: "changed" | "removed", there: string): string {
  return `its schedule was ${what}, so it is no longer continued automatically; \`bulkgen resume${there}\` continues it`;
}

/** Whether a signal or a defect ended the process. */
export function isLost({ exit }: ScheduledRunEnd): boolean {
  return exit === null || exit === exitCode("crash");
}

/** Time until a run that could not be continued is tried again (ms). */
const stuckMs = 60 * 60_000;
/** Exits of a process that could not continue a run, which is as unfinished as before. */
const stuckExits: readonly number[] = (["usage", "key", "unreachable", "locked"] as const).map(exitCode);

/** Whether a known run could not be continued: its process did not come so far that it had something to report. */
export function isStuck({ run, exit }: ScheduledRunEnd, before: Pick<ScheduledRun, "run">): boolean {
  return before.run !== null && run === null && exit !== null && stuckExits.includes(exit);
}

/** Whether a scheduled run waits because it could not be continued. */
export function isWaitingStuck({ state, exit }: Pick<ScheduledRun, "state" | "exit">): boolean {
  return state === "waiting" && exit !== null && stuckExits.includes(exit);
}

/** When the run continues without a person (UTC ms); null when it is over. */
export function againAt(
  end: ScheduledRunEnd,
  {
    losses,
    now,
    isStopping,
    before,
  }: { losses: number; now: number; isStopping: boolean; before: Pick<ScheduledRun, "run"> },
): number | null {
  if (isStuck(end, before)) return now + stuckMs;
  if (end.exit === exitCode("interrupted")) return isStopping ? now : null;
  if (isLost(end)) return losses < lossesMax ? now + lostMs : null;
  return end.resumeAt === null ? null : Math.max(end.resumeAt, now + lostMs);
}

/** How a run that was started by hand ended, for programs: credits as numbers. */
export function endJson(schedule: string, end: Omit<ScheduledRunEnd, "resumeAt">) {
  const { exit, run, credits, archived, failed, held, note } = end;
  return {
    schedule,
    exit,
    exitName: exitNameOf(exit),
    run,
    archived,
    failed,
    held,
    credits: credits === null ? null : toNumber(credits),
    note,
  };
}

/** What to type after a run that did not end well. */
export function whatToType(
  { run, exit }: Pick<ScheduledRunEnd, "run" | "exit">,
  { root, manifest, sandbox }: { root: string; manifest: string; sandbox: boolean },
): string {
  const where = ` --workspace ${shellWord(root)}${sandboxFlag({ sandbox })}`;
  if (run === null && exit === exitCode("usage"))
    return `\`bulkgen plan${where} ${shellWord(resolve(root, manifest))}\` says what is wrong`;
  const isUnknown = run === null && exit !== null && exit !== exitCode("locked");
  return isUnknown
    ? `\`bulkgen doctor${where}\` says what is wrong`
    : `\`bulkgen status${where}\` says why, and what to do`;
}

/** How it ended, in one line. */
export function endText({ exit, note, credits }: ScheduledRunEnd): string {
  const spent = credits === null ? "" : `, ${inCredits(credits)}`;
  return `${note}${spent}${exit === null ? "" : ` (exit ${exit})`}`;
}
