import { type ItemState, wantedItems } from "../core/item.js";
import { inCredits, minus, showCredits } from "../core/money.js";
import { timeLeftMs } from "../core/pace/time-left.js";
import type { Quota, WaitReason } from "../core/quota/quota.js";
import type { Obstacles, Progress } from "../run/loop.js";
import { count, wait } from "../text/amounts.js";
import { terminalText } from "../text/terminal.js";
import { localTime } from "../text/times.js";
import { countedStates } from "./state-words.js";

/** The state of a run at `now` (UTC ms), this long after it started here. */
export type ProgressNow = Progress & { now: number; elapsedMs: number };

/** What is still to come, and then what went wrong. */
const inProgress: readonly ItemState[] = [
  "processing",
  "submitting",
  "ready",
  "planned",
  "blocked",
  "failed",
  "held",
  "unknown",
  "overdue",
];

/**
 * One line, for where lines stay: `12/26 archived · 0:40, ~0:59 left · 48 of 104 credits · 8 at the service · 6 to submit`.
 */
export function progressLine(progress: ProgressNow): string {
  const { counts, spent, cap, quota } = progress;
  return [
    `${counts.archived}/${wantedItems(counts)} archived`,
    ...obstacles(progress),
    times(progress),
    ...(spent === 0 && (cap ?? 0) <= 0 ? [] : [spentText(progress)]),
    ...countedStates(counts, inProgress),
    ...requests(quota),
  ].join(" · ");
}

/** What keeps the run from continuing, the most important first. */
export function obstacles(progress: ProgressNow): string[] {
  const { stops, hold, until, now } = progress;
  const [stop] = stops;
  if (stop) return [`stopping: ${terminalText(stop.message)}`];
  const obstacle = obstacleText(progress, until === null ? "" : `, next try in ${wait(until - now)}`);
  if (obstacle !== null) return [obstacle];
  const next = waitNow(progress);
  return [
    ...(hold === null ? [] : [holdLine(hold, now)]),
    ...(next === null ? [] : [waitingLine(next.what, next.until, now)]),
  ];
}

/** What the next request waits for, and until when (UTC ms). */
function waitNow({
  waiting,
  until,
  quota,
  counts,
  now,
}: ProgressNow): { what: WaitReason; until: number } | null {
  if (waiting !== null && waiting !== "tasks" && until !== null && until > now)
    return { what: waiting, until };
  const full = quota.minute.nextFreeAt > now && counts.planned + counts.processing > 0;
  return full ? { what: "minute", until: quota.minute.nextFreeAt } : null;
}

/** The time that has passed, and about how much is left: no less than the wait for the next request. */
export function times(progress: ProgressNow): string {
  const { elapsedMs, forecastMs, counts, now } = progress;
  const left = timeLeftMs(counts, forecastMs, elapsedMs);
  if (left === null) return clockText(elapsedMs);
  const waitMs = (waitNow(progress)?.until ?? now) - now;
  const longer = Math.max(left, waitMs);
  return longer < 1_000 ? clockText(elapsedMs) : `${clockText(elapsedMs)}, ~${clockText(longer)} left`;
}

/** `0:52`, `12:05`, `3:02:10`. */
function clockText(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const two = (number: number) => `${number}`.padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return hours === 0 ? `${minutes}:${two(seconds % 60)}` : `${hours}:${two(minutes)}:${two(seconds % 60)}`;
}

/**
 * The credits that are spent, and the most that the caps allow now. `--keep-credits` allows less when others spend from
 * the balance or a price turns out higher: then more may be spent already. A run that only collects has no cap to show.
 */
export function spentText({ spent, cap }: Pick<Progress, "spent" | "cap">): string {
  if (cap === null || cap <= 0) return inCredits(spent);
  if (spent > cap)
    return `${inCredits(spent)}, ${showCredits(minus(spent, cap))} more than the caps allow now`;
  return `${showCredits(spent)} of ${inCredits(cap)}`;
}

/** What holds a run up, with the end of the line for an outage; null if nothing does. */
export function obstacleText({ diskTrouble, outage }: Obstacles, nextTry = ""): string | null {
  if (diskTrouble !== null)
    return `files cannot be saved (nothing new is bought): ${terminalText(diskTrouble)}`;
  if (outage === null) return null;
  const from = localTime(outage.since).slice("2026-11-20 ".length);
  return `service unreachable since ${from} (${terminalText(outage.reason)})${nextTry}`;
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

function requests({ minute }: Quota): string[] {
  return minute.limit === null ? [] : [`${minute.used}/${minute.limit} requests this minute`];
}
