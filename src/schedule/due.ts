import { Cron } from "croner";
import { EarlyExit } from "../core/exit.js";
import type { Schedule } from "../store/schedules.js";
import { count } from "../text/amounts.js";

/** A date and time in a zone. */
export interface LocalTime {
  /** `2026-11-21` */
  date: string;
  /** `02:00` */
  time: string;
  /** `Sat` */
  weekday: string;
  /** `CET`, `GMT+11` */
  zone: string;
}

export function timeIn(at: number, zone: string): LocalTime {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    weekday: "short",
    timeZoneName: "short",
  }).formatToParts(new Date(at));
  const part = (type: string) => parts.find((each) => each.type === type)?.value ?? "";
  return {
    date: `${part("year")}-${part("month")}-${part("day")}`,
    time: `${part("hour")}:${part("minute")}`,
    weekday: part("weekday"),
    zone: part("timeZoneName"),
  };
}

/** `Sat 2026-11-21 02:00 CET` */
export function localText(at: number, zone: string): string {
  const local = timeIn(at, zone);
  return `${local.weekday} ${local.date} ${local.time} ${local.zone}`;
}

/**
 * When a schedule is due, in its zone. A time that is skipped when clocks go forward is due right after the gap. A time
 * that occurs twice when clocks go back is due at the first of the two. A line with a wildcard or a step in its minutes
 * or hours, such as every half hour, goes by elapsed time instead.
 */
type Line = Pick<Schedule, "cron" | "zone">;

/** Throws EarlyExit for a line that cannot be read or never comes due, and for a zone that does not exist. */
export function checkLine(line: Line, now: number): void {
  checkZone(line.zone);
  let next: number | null;
  try {
    next = nextDue(line, now);
  } catch (error) {
    const fields = line.cron.split(" ").filter((field) => field !== "").length;
    // The library accepts seconds and years, which a schedule does not have.
    const why =
      fields === 5
        ? `: ${(error as Error).message.replace(/^CronPattern: /, "")}`
        : `, which has ${count(fields, "field")}`;
    throw new EarlyExit(
      "usage",
      `--cron: expected five fields such as "0 2 * * *" (minute hour day month weekday), got ${JSON.stringify(line.cron)}${why}`,
    );
  }
  if (next !== null) return;
  throw new EarlyExit(
    "usage",
    `--cron: expected a line that comes due, got ${JSON.stringify(line.cron)}, which never does: no such day is in any year`,
  );
}

function checkZone(zone: string): void {
  if (isZone(zone)) return;
  throw new EarlyExit(
    "usage",
    `--tz: expected a zone such as Europe/Berlin or UTC, got ${JSON.stringify(zone)}, which does not exist`,
  );
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

/** The zone of this machine. Throws EarlyExit if nobody knows its name, as with TZ=UTC0. */
export function zoneHere(): string {
  // Then it is missing, whatever its type says, or a placeholder.
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions() as { timeZone?: string };
  if (timeZone !== undefined && isZone(timeZone)) return timeZone;
  throw new EarlyExit(
    "usage",
    "--tz: expected a zone such as Europe/Berlin or UTC, because the variable TZ of this machine names none",
  );
}

/** The first due time after `after` (UTC ms); null when there is none. */
export function nextDue(cronLine: Line, after: number): number | null {
  const line = read(cronLine);
  const { from, next } = line.asked;
  // The answer is cached: it is needed at every turn, and each costs a search.
  if (from <= after && (next === null || after < next)) return next;
  line.asked = { from: after, next: line.cron.nextRun(new Date(after))?.getTime() ?? null };
  return line.asked.next;
}

/** When a run of a schedule is started next (UTC ms): not while it is paused. */
export function nextStart(schedule: Line & Pick<Schedule, "pausedAt">, now: number): number | null {
  return schedule.pausedAt === null ? nextDue(schedule, now) : null;
}

/** The due times after `after` up to `until`, newest first, at most `limit`. */
export function dueBetween(line: Line, after: number, until: number, limit: number): number[] {
  const first = nextDue(line, after);
  if (first === null || first > until) return [];
  // Each time costs a search, and mostly there is one. Croner searches strictly before, in whole seconds.
  for (let asked = 1; ; asked = Math.min(limit, asked * 4)) {
    const times = read(line)
      .cron.previousRuns(asked, new Date(until + 1_000))
      .map((time) => time.getTime())
      .filter((time) => time <= until);
    const due = times.filter((time) => time > after);
    if (due.length < times.length || times.length < asked - 1 || asked === limit) return due;
  }
}

interface ReadLine {
  cron: Cron;
  /** The latest answer: the first due time after `from`. */
  asked: { from: number; next: number | null };
}

const known = new Map<string, ReadLine>();

function read({ cron, zone }: Line): ReadLine {
  const name = `${zone} ${cron}`;
  let line = known.get(name);
  if (!line) {
    const asked = { from: Number.POSITIVE_INFINITY, next: null };
    // Lists and ranges are times of day too; only a line with a wildcard or a step runs through a repeated hour.
    const options = { timezone: zone, mode: "5-part", fixedTimeRule: "no-wildcard" } as const;
    line = { cron: new Cron(cron, options), asked };
    known.set(name, line);
  }
  return line;
}
