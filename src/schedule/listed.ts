import { toNumber } from "../core/money.js";
import type { Night } from "../store/schedules.js";
import { nextDue } from "./due.js";
import { nightEdition, nightEnd } from "./night.js";
import type { Tonight } from "./tonight.js";

/** A schedule for programs: times in ISO 8601, credits as numbers. */
export function listedSchedule({ schedule, settings, nights }: Tonight, now: number): object {
  const { name, manifest, cron, zone, missed } = schedule;
  const next = nextDue(schedule, now);
  return {
    ...{ name, manifest, cron, zone, missed },
    next: iso(next),
    edition: next === null ? null : nightEdition(schedule, next),
    until: next === null ? null : iso(nightEnd(schedule, next)),
    settings,
    nights: nights.map(listedNight),
  };
}

function listedNight({ schedule: _, dueAt, startedAt, endedAt, resumeAt, credits, ...night }: Night): object {
  return {
    due: iso(dueAt),
    ...night,
    credits: credits === null ? null : toNumber(credits),
    started: iso(startedAt),
    ended: iso(endedAt),
    resume: iso(resumeAt),
  };
}

function iso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
