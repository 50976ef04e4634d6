import { type Quota, utcTime } from "../core/quota/quota.js";
import type { Progress } from "../run/loop.js";
import { count, wait } from "../text/amounts.js";
import { terminalText } from "../text/terminal.js";

/** Where a run stands at `now` (UTC ms). */
export type ProgressNow = Progress & { now: number };

export type WaitReason = "minute" | "day" | "service";

/** One line: `12/26 archived · 8 at the service · 6 to submit · 31/60 requests this minute`. */
export function progressLine(progress: ProgressNow): string {
  const { counts, now, stops, diskTrouble, hold } = progress;
  const total = Object.values(counts).reduce((sum, number) => sum + number, 0) - counts.dropped;
  const pieces = [
    `${counts.archived}/${total} archived`,
    some(counts.submitting + counts.processing, "at the service"),
    some(counts.ready, "to fetch"),
    some(counts.planned, "to submit"),
    some(counts.blocked, "waiting for another item"),
    some(counts.failed, "failed"),
    some(counts.held, "held"),
    some(counts.unknown, "unknown"),
    some(counts.overdue, "overdue"),
    requests(progress.quota),
    waitingText(progress),
    hold === null ? "" : holdLine(hold, now),
    diskTrouble === null ? "" : `waiting for the disk (nothing new is bought): ${terminalText(diskTrouble)}`,
    ...stops.slice(0, 1).map((stop) => `stopping: ${terminalText(stop.message)}`),
  ];
  return pieces.filter((piece) => piece !== "").join(" · ");
}

function waitingText({ waiting, until, now, outage }: ProgressNow): string {
  const waits = waiting !== null && waiting !== "tasks" && until !== null;
  if (outage === null) return waits ? waitingLine(waiting, until, now) : "";
  const since = utcTime(outage.since).slice("2026-11-20 ".length);
  const next = waits ? `, next try in ${wait(until - now)}` : "";
  return `service unreachable since ${since} (${terminalText(outage.reason)})${next}`;
}

/** Why the next request is not sent yet, and for how long. */
export function waitingLine(what: WaitReason, until: number, now: number): string {
  const left = wait(until - now);
  switch (what) {
    case "minute":
      return `minute quota used up, next request in ${left}`;
    case "day":
      return `daily quota used up, next request in ${left}`;
    case "service":
      return `the service asked us to wait, next request in ${left}`;
  }
}

function holdLine({ unsettled, until }: NonNullable<ProgressNow["hold"]>, now: number): string {
  return `submitting is paused until ${count(unsettled, "lost answer is", "lost answers are")} settled, next check in ${wait(until - now)}`;
}

function requests({ minute }: Quota): string {
  return minute.limit === null
    ? `${minute.used} requests this minute`
    : `${minute.used}/${minute.limit} requests this minute`;
}

function some(number: number, what: string): string {
  return number === 0 ? "" : `${number} ${what}`;
}
