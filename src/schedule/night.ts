import { Liquid } from "liquidjs";
import { EarlyExit } from "../core/exit.js";
import { type Credits, inCredits } from "../core/money.js";
import type { Schedule, ScheduledRun } from "../store/schedules.js";
import { nextDue } from "./due.js";
import { localTime } from "./zone.js";

/** The value of a flag of a schedule; the empty text for one without a value, null when it is not there. */
export function flagOf({ flags }: Pick<Schedule, "flags">, name: string): string | null {
  const flag = flags.find(([known]) => known === name);
  return flag ? (flag[1] ?? "") : null;
}

/** When a night submits nothing more (UTC ms): the first `--until` after it was due, on the clocks of its zone. */
export function scheduledEnd(schedule: Pick<Schedule, "flags" | "zone">, dueAt: number): number | null {
  const until = flagOf(schedule, "--until");
  if (until === null) return null;
  const [hour = "", minute = ""] = until.split(":");
  return nextDue({ cron: `${Number(minute)} ${Number(hour)} * * *`, zone: schedule.zone }, dueAt);
}

/**
 * The edition that a night makes; null when it goes on with the job's only one. It belongs to the due time, not to the
 * time of the start: a night that is begun again, or caught up a day late, makes what it would have made.
 * Throws EarlyExit for a template that cannot be filled in.
 */
export function scheduledEdition(
  schedule: Pick<Schedule, "flags" | "zone" | "name">,
  dueAt: number,
): string | null {
  // To the minute, in UTC: no two nights share it, not even where clocks show an hour twice.
  if (flagOf(schedule, "--fresh") !== null) return `${new Date(dueAt).toISOString().slice(0, 16)}Z`;
  const template = flagOf(schedule, "--edition");
  if (template === null) return null;
  const { date, time } = localTime(dueAt, schedule.zone);
  const engine = new Liquid({ strictVariables: true, strictFilters: true, ownPropertyOnly: true });
  try {
    return engine.parseAndRenderSync(template, { date, time, schedule: schedule.name });
  } catch (error) {
    throw new EarlyExit(
      "usage",
      `--edition: expected a name, with {{ date }}, {{ time }} or {{ schedule }} in it where wanted, got ${JSON.stringify(template)}: ${(error as Error).message}`,
    );
  }
}

/** What the process of a night is told: a command of bulkgen and its words. */
export interface ScheduledCommand {
  command: "run" | "resume";
  words: string[];
}

/** Flags that `resume` takes too; the others are kept with the run. */
const carried = [
  "--sandbox",
  "--base-url",
  "--api-key-file",
  "--log-level",
  "--unreachable-wait",
  "--if-locked",
  "--notify",
  "--notify-command",
  "--smtp-url",
  "--smtp-from",
];
/** Flags that a night fills in itself. */
const filledIn = ["--until", "--fresh", "--edition"];

/**
 * A night's first start reads the manifest. One whose run is known goes on with it as it was planned, also when the
 * manifest is gone meanwhile. The end of the night is told as an instant, so that a late start moves nothing.
 */
export function scheduledCommand(
  schedule: Schedule,
  night: Pick<ScheduledRun, "dueAt" | "run">,
): ScheduledCommand {
  const resumes = night.run !== null;
  const flags = schedule.flags.filter(([name]) =>
    resumes ? carried.includes(name) : !filledIn.includes(name),
  );
  const words = flags.flatMap(([name, value]) => (value === undefined ? [name] : [`${name}=${value}`]));
  // Another run of the workspace, by hand or of another schedule, is waited for.
  if (flagOf(schedule, "--if-locked") === null) words.push("--if-locked=wait");
  if (resumes) return { command: "resume", words: [...words, String(night.run)] };
  const end = scheduledEnd(schedule, night.dueAt);
  if (end !== null) words.push(`--until=${new Date(end).toISOString()}`);
  const edition = scheduledEdition(schedule, night.dueAt);
  if (edition !== null) words.push(`--edition=${edition}`);
  return { command: "run", words: [...words, "--yes", "--", schedule.manifest] };
}

/** What came of the process of a night. */
export interface ScheduledRunEnd {
  /** Null when a signal ended it, or when it could not be started. */
  exit: number | null;
  /** In one line. */
  note: string;
  run: number | null;
  credits: Credits | null;
  archived: number | null;
  failed: number | null;
  held: number | null;
  /** When it can go on by itself (UTC ms). */
  resumeAt: number | null;
}

/** Until a night whose process was lost goes on (ms), and how often it does. */
const lostMs = 60_000;
const lossesMax = 2;
const interruptedExit = 130;
const crashExit = 1;

/** Whether its process ended by a signal or by a defect. */
export function isLost({ exit }: ScheduledRunEnd): boolean {
  return exit === null || exit === crashExit;
}

/** When a night goes on by itself (UTC ms); null when it is over. */
export function againAt(
  end: ScheduledRunEnd,
  { losses, now, isStopping }: { losses: number; now: number; isStopping: boolean },
): number | null {
  if (end.exit === interruptedExit) return isStopping ? now : null;
  if (isLost(end)) return losses < lossesMax ? now + lostMs : null;
  return end.resumeAt === null ? null : Math.max(end.resumeAt, now + lostMs);
}

/** The end in one line. */
export function endText({ exit, note, credits }: ScheduledRunEnd): string {
  const spent = credits === null ? "" : `, ${inCredits(credits)}`;
  return `${note}${spent}${exit === null ? "" : ` (exit ${exit})`}`;
}
