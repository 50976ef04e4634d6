import { dayMs } from "../quota/quota.js";
import { ageWhen, chanceDone, type DurationEstimate, survival } from "./pace.js";

/**
 * When to poll a task. The service's page recommends polling after 2 seconds, growing to 10. But a poll costs a request,
 * of which there are few, and a poll that finds the task unfinished is wasted. So a poll is due at the age at which the
 * task is finished with a certain chance, given how long the model takes and that the task was unfinished at the last
 * poll; never closer together than recommended. `pressure` decides that chance. After 10 minutes a task is overdue: it
 * stays alive and is polled rarely.
 */
export const pollMsMin = 2_000;
const pollMsMax = 10_000;
export const pollWindowMs = 10 * 60_000;
const overdueMsMax = 60 * 60_000;
/**
 * A task that has lasted longer than nearly all of its kind may last far longer still: its age at the next poll is at
 * most this many times its age at the last. If durations have no heavy tail, it is polled long before that.
 */
const growthMost = 4;
const growth = 1.5;

/** Milliseconds between polls without any duration estimate, after so many polls. */
export function pollInterval(polls: number): number {
  return Math.min(pollMsMax, pollMsMin * growth ** polls);
}

/** The least time (whole ms) to the next poll of a task that was unfinished at this age. */
export function pollSpacing(ageMs: number): number {
  return Math.min(pollMsMax, Math.max(pollMsMin, Math.ceil(ageMs / 14)));
}

/** What matters about a task for deciding when to poll it. Times are UTC ms. */
export interface OpenTask {
  id: number;
  /** The price group, which determines the duration estimate. */
  group: string;
  /** `expired`: completed, but its URLs have expired; a poll gets new ones. */
  kind: "processing" | "overdue" | "expired";
  /** When the service had accepted it. */
  since: number;
  /** When it was last found unfinished, or null. */
  seenAt: number | null;
  /** No poll is made before then; except for `processing`, the next poll is made then. */
  nextAt: number;
  /**
   * Of a task that its provider has, or is about to have: `since` is when it begins. Others wait behind all but the last ones.
   */
  turn?: { isLast: boolean };
}

/** The next poll of a task, at the age at which it is finished with the chance `threshold`. */
export function pollAt(
  task: OpenTask,
  pace: DurationEstimate,
  threshold: number,
  now: number,
): { at: number; chance: number } {
  const { since, seenAt, kind } = task;
  if (kind !== "processing") return { at: task.nextAt, chance: kind === "expired" ? 1 : 0 };
  // No poll is postponed for longer, so a later one was set before the clock was set back.
  const nextAt = task.nextAt > now + queuedMsMax ? now : task.nextAt;
  // Once the clock was set back, its age is unknown.
  const hasBegun = since <= now || task.turn !== undefined;
  if (!hasBegun || (seenAt !== null && seenAt > now)) return { at: nextAt, chance: 0.5 };
  const seenMs = seenAt === null ? 0 : Math.max(1, seenAt - since);
  const wanted = ageWhen(pace, threshold, seenMs);
  const latest =
    seenAt === null
      ? pollWindowMs
      : Math.min(pollWindowMs, Math.max(growthMost * seenMs, seenMs + pollMsMax));
  return {
    at: Math.max(nextAt, Math.ceil(since + Math.min(wanted, latest))),
    chance: chanceDone(pace, now - since, seenMs),
  };
}

/** Below this share of unfinished tasks, polls of the rest are ignored. */
const shareMin = 0.001;

/** The average number of polls per task if each is made at the age at which it succeeds with that chance. */
export function expectedPolls(pace: DurationEstimate, threshold: number): number {
  let task: OpenTask = { id: 0, group: "", kind: "processing", since: 0, seenAt: null, nextAt: pollMsMin };
  let polls = 0;
  for (let unfinished = 1; unfinished > shareMin && task.nextAt < pollWindowMs; ) {
    polls += unfinished;
    const { at } = pollAt(task, pace, threshold, task.nextAt);
    unfinished = survival(pace, at);
    task = { ...task, seenAt: at, nextAt: at + pollSpacing(at) };
  }
  return polls;
}

/** The poll of a task without any estimate, as the service's page recommends if slots are plentiful. */
export function recommendedAt({ since, seenAt, nextAt }: OpenTask): number {
  const age = Math.ceil(growth * ((seenAt ?? since) - since));
  return Math.max(nextAt, since + Math.max(pollMsMin, age));
}

/** Milliseconds until a task is finished with a chance of nine in ten. */
export function leftMs({ since, seenAt }: OpenTask, pace: DurationEstimate, now: number): number {
  return Math.max(0, since + ageWhen(pace, 0.9, seenAt === null ? 0 : Math.max(1, seenAt - since)) - now);
}

/** How many tasks are overdue, and the daily request limit that their polls use (null: unlimited). */
export interface Overdue {
  tasks: number;
  perDay: number | null;
}

/** The share of the day's requests that polls of all overdue tasks together may use. */
const overdueShare = 0.1;
const overdueSpacingMax = 14 * dayMs;
/** The least factor by which a task's age grows between polls. */
const overdueGrowth = 0.05;
/** Most overdue tasks end soon: this part of the share is for polls up to this age. */
const overdueEarlyMs = 60 * 60_000;
const overdueEarlyShare = 0.6;

/**
 * Milliseconds until an overdue task is polled again: a twentieth of its age, and never so soon that all of them together
 * use more than a tenth of the day's requests. Ages at polls grow by a factor, so most polls are in the first day, and
 * the factor keeps them within the share even then. A task that seems to be from the future was submitted before the
 * clock was set back by at least that much, which counts as its age.
 */
export function overdueInterval(ageMs: number, { tasks, perDay }: Overdue): number {
  const age = Math.max(pollWindowMs, Math.abs(ageMs));
  const own = Math.ceil(Math.min(overdueMsMax, age * overdueGrowth));
  if (perDay === null) return own;
  const polls = (perDay * overdueShare) / tasks;
  const stretch = age < overdueEarlyMs ? pollWindowMs : overdueEarlyMs;
  const [ratio, share] =
    stretch === pollWindowMs
      ? [overdueEarlyMs / pollWindowMs, overdueEarlyShare]
      : [1 + dayMs / overdueEarlyMs, 1 - overdueEarlyShare];
  return Math.min(overdueSpacingMax, Math.max(own, Math.ceil(age * (ratio ** (1 / (polls * share)) - 1))));
}

/**
 * Whether the time in which a task should end has passed. If the clock was set back by more than that, it is unknown, and
 * polling rarely is the safe choice: polling often could last as long as the clock is behind.
 */
export function windowPassed(ageMs: number): boolean {
  return Math.abs(ageMs) >= pollWindowMs;
}

/**
 * The order of downloads (P15). Signed URLs expire, and some of them contain the time: those go first, the earliest expiry
 * first. The others follow in their original order. A URL is tried however old it is, because a clock may be wrong and a
 * try costs nothing.
 */
export function fetchBy(urls: readonly string[], now: number): number {
  const ends = urls.map(statedEnd).filter((end) => end !== null);
  return ends.length > 0 ? Math.min(...ends) : now + afterStatedMs;
}

/** Longer than any URL is signed for, so that URLs without an expiry come after those with one. */
const afterStatedMs = 366 * 24 * 60 * 60_000;

/** A URL that does not state its expiry is handed on for this long (ms) after it arrived. */
const handedOnMs = 5 * 60_000;
/** What the service needs from a request to the reading of its inputs, in ms. */
const readWithinMs = 60_000;
/** A URL that arrived so recently (ms) is the best that the service has, however short it lives. */
const justArrivedMs = 10_000;

/** Whether a URL that arrived `ageMs` ago may be sent to the service as an input; `now` is the service's time (UTC ms). */
export function isFresh(url: string, ageMs: number, now: number): boolean {
  // A clock that was set back says nothing of its age.
  if (ageMs < 0) return false;
  const end = statedEnd(url);
  if (end === null) return ageMs < handedOnMs;
  return end > now && (end - now > readWithinMs || ageMs < justArrivedMs);
}

/** The expiry (UTC ms) in a URL signed by an object store; null if it has none. */
export function statedEnd(url: string): number | null {
  if (!URL.canParse(url)) return null;
  const query = new Map([...new URL(url).searchParams].map(([name, value]) => [name.toLowerCase(), value]));
  return (
    lifeFrom(query, "x-amz") ?? lifeFrom(query, "x-goog") ?? instant(query.get("expires") ?? query.get("se"))
  );
}

/** When it was signed, and for how many seconds. */
function lifeFrom(query: ReadonlyMap<string, string>, vendor: string): number | null {
  const signed = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(query.get(`${vendor}-date`) ?? "");
  const seconds = query.get(`${vendor}-expires`) ?? "";
  if (signed === null || !/^\d{1,9}$/.test(seconds)) return null;
  const [year = 0, month = 0, day, hour, minute, second] = signed.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + Number(seconds) * 1000;
}

/** Seconds or milliseconds since 1970, or a date. */
function instant(text = ""): number | null {
  if (/^\d{9,10}$/.test(text)) return Number(text) * 1000;
  if (/^\d{12,13}$/.test(text)) return Number(text);
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}

const queuedMsMin = 5_000;
const queuedMsMax = 300_000;

/** Milliseconds until a task is polled again that waits in the service's queue; `aheadMs` is null if nobody knows how long. */
export function queuedInterval(aheadMs: number | null): number {
  return Math.min(queuedMsMax, Math.max(queuedMsMin, (aheadMs ?? 0) / 2));
}
