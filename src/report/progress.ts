import { type ItemState, wantedItems } from "../core/item.js";
import { inCredits, minus, showCredits } from "../core/money.js";
import { timeLeftMs } from "../core/pace/time-left.js";
import type { Quota } from "../core/quota/quota.js";
import { isOfQuota, type Reason } from "../core/reason.js";
import type { Progress } from "../run/loop.js";
import { wait } from "../text/amounts.js";
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
    ...reasonNow(progress),
    times(progress),
    ...(spent === 0 && (cap ?? 0) <= 0 ? [] : [spentText(progress)]),
    ...countedStates(counts, inProgress),
    ...requests(quota),
  ].join(" · ");
}

/** Why nothing is bought or sent now, if so. */
export function reasonNow({ reason, now }: ProgressNow): string[] {
  // A request that may be sent by now is about to be.
  const isOver = reason === null || (isOfQuota(reason) && (reason.until ?? 0) <= now);
  return isOver ? [] : [reasonText(reason, now)];
}

/** What the run does at the end of a wait. */
function nextOf(reason: Reason): string {
  if (reason.kind === "outage") return "next try";
  return isOfQuota(reason) ? "next request" : "next check";
}

const clockFromMs = 60 * 60_000;

/** The reason as one sentence at `now` (UTC ms), the same everywhere: `minute quota used up, next request in 12s`. */
export function reasonText(reason: Reason, now: number): string {
  const { text, until } = reason;
  const shown = terminalText(text);
  if (until === null || until <= now) return shown;
  const left = until - now;
  const when = left < clockFromMs ? `in ${wait(left)}` : `at ${localTime(until)}`;
  return `${shown}, ${nextOf(reason)} ${when}`;
}

/**
 * The time that has passed, and about how much is left: no less than the wait for the next request, and nothing while
 * the end of a wait is not known.
 */
export function times(progress: ProgressNow): string {
  const { elapsedMs, forecastMs, counts, now, reason } = progress;
  const left = timeLeftMs(counts, forecastMs, elapsedMs);
  if (left === null || (reason !== null && !isOfQuota(reason))) return clockText(elapsedMs);
  const waitMs = (reason?.until ?? now) - now;
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

function requests({ minute }: Quota): string[] {
  return minute.limit === null ? [] : [`${minute.used}/${minute.limit} requests this minute`];
}
