import { dayMs } from "../quota/quota.js";
import { ageWhen, chanceDone, type DurationEstimate, survival } from "./pace.js";

/**
 * When to look at a task. The service's page recommends to begin after 2 seconds and to grow to 10; a look costs a
 * request, though, of which there are few, and an answer that says "not yet" has bought nothing. So a look is due at
 * the age at which the result is there with a certain chance, given how long the model takes and that the task was
 * not finished at the last look; never closer together than recommended. What chance is asked for is `pressure`'s to
 * say. After 10 minutes a task is overdue, stays alive and is looked at rarely.
 */
export const pollMsMin = 2_000;
export const pollMsMax = 10_000;
export const pollWindowMs = 10 * 60_000;
const overdueMsMax = 60 * 60_000;
/**
 * What has lasted longer than nearly all of its kind may last far longer still: its age at the next look is at most so
 * many times that at the last. Where durations have no heavy tail, it is looked at long before that.
 */
const growthMost = 4;
const growth = 1.5;

/** Milliseconds from one look to the next where the looks brought nothing to go by, after `looks` of them. */
export function pollInterval(looks: number): number {
  return Math.min(pollMsMax, pollMsMin * growth ** looks);
}

/** The least time (whole ms) from a look that found a task of this age unfinished to the next. */
export function pollSpacing(ageMs: number): number {
  return Math.min(pollMsMax, Math.max(pollMsMin, Math.ceil(ageMs / 14)));
}

/** A task at the service, as far as it matters for when to look at it. Times are UTC ms. */
export interface OpenTask {
  id: number;
  /** The price group, which stands for how long it takes. */
  group: string;
  /** `expired` is one that ended well, whose addresses are too old: a look gets fresh ones. */
  kind: "processing" | "overdue" | "expired";
  /** When the service had accepted it. */
  since: number;
  /** When it was last found unfinished, or null. */
  seenAt: number | null;
  /** No look is made before then; for all but `processing` it is when the next is made. */
  nextAt: number;
}

/** The look at a task, at the age at which it is finished with the chance `threshold`. */
export function pollAt(
  task: OpenTask,
  pace: DurationEstimate,
  threshold: number,
  now: number,
): { at: number; chance: number } {
  const { since, seenAt, kind } = task;
  if (kind !== "processing") return { at: task.nextAt, chance: kind === "expired" ? 1 : 0 };
  // No look is put off for longer, so a later one was set before the clock was put back.
  const nextAt = task.nextAt > now + pollMsMax ? now : task.nextAt;
  // After the clock was put back nothing is known of its age.
  if (since > now || (seenAt !== null && seenAt > now)) return { at: nextAt, chance: 0.5 };
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

/** Below this share of tasks that are unfinished, the looks at the rest count for nothing. */
const shareMin = 0.001;

/** How many looks a task costs on average, where each is made at the age at which it succeeds with that chance. */
export function expectedPolls(pace: DurationEstimate, threshold: number): number {
  let task: OpenTask = { id: 0, group: "", kind: "processing", since: 0, seenAt: null, nextAt: pollMsMin };
  let looks = 0;
  for (let unfinished = 1; unfinished > shareMin && task.nextAt < pollWindowMs; ) {
    looks += unfinished;
    const { at } = pollAt(task, pace, threshold, task.nextAt);
    unfinished = survival(pace, at);
    task = { ...task, seenAt: at, nextAt: at + pollSpacing(at) };
  }
  return looks;
}

/** The look at a task of which nothing is known, as the service's page recommends it where places are plenty. */
export function recommendedAt({ since, seenAt, nextAt }: OpenTask): number {
  const age = Math.ceil(growth * ((seenAt ?? since) - since));
  return Math.max(nextAt, since + Math.max(pollMsMin, age));
}

/** Milliseconds until a task is finished with a chance of nine in ten. */
export function leftMs({ since, seenAt }: OpenTask, pace: DurationEstimate, now: number): number {
  return Math.max(0, since + ageWhen(pace, 0.9, seenAt === null ? 0 : Math.max(1, seenAt - since)) - now);
}

/** How many tasks are overdue, and the day's limit of requests that their looks come out of (null: none). */
export interface Overdue {
  tasks: number;
  perDay: number | null;
}

/** What share of the day's requests the looks at all overdue tasks together may take. */
const overdueShare = 0.1;
const overdueSpacingMax = 14 * dayMs;
/** A task's age grows by no less than this from one look to the next. */
const overdueGrowth = 0.05;
/** Most of what is overdue ends soon: so much of the share is for the looks up to this age. */
const overdueEarlyMs = 60 * 60_000;
const overdueEarlyShare = 0.6;

/**
 * Milliseconds until an overdue task is looked at again: a twentieth of its age, and never so soon that all of them
 * together take more than a tenth of the day's requests. With looks at ages that grow by a factor, there are most of
 * them in the first day, and the factor is such that they are not too many even then. A task that seems to be of the
 * future was begun before the clock was put back by at least so much, which counts as its age.
 */
export function overdueInterval(ageMs: number, { tasks, perDay }: Overdue): number {
  const age = Math.max(pollWindowMs, Math.abs(ageMs));
  const own = Math.ceil(Math.min(overdueMsMax, age * overdueGrowth));
  if (perDay === null) return own;
  const looks = (perDay * overdueShare) / tasks;
  const stretch = age < overdueEarlyMs ? pollWindowMs : overdueEarlyMs;
  const [ratio, share] =
    stretch === pollWindowMs
      ? [overdueEarlyMs / pollWindowMs, overdueEarlyShare]
      : [1 + dayMs / overdueEarlyMs, 1 - overdueEarlyShare];
  return Math.min(overdueSpacingMax, Math.max(own, Math.ceil(age * (ratio ** (1 / (looks * share)) - 1))));
}

/**
 * Whether the time in which a task is expected to end has passed. Where the clock was set back by more than that,
 * nobody knows, and looking rarely is the safe guess: looking often could go on for as long as the clock is behind.
 */
export function windowPassed(ageMs: number): boolean {
  return Math.abs(ageMs) >= pollWindowMs;
}

/**
 * In which order outputs are fetched (P15). Signed addresses are deadlines, and some of them carry the instant of their
 * end: those go first, the earliest end first. The others follow in the order in which they came. An address is tried
 * however old it is, because a clock may be wrong and a try costs nothing.
 */
export function fetchBy(urls: readonly string[], now: number): number {
  const ends = urls.map(statedEnd).filter((end) => end !== null);
  return ends.length > 0 ? Math.min(...ends) : now + afterStatedMs;
}

/** Longer than any address is signed for, so that addresses without an end come after those with one. */
const afterStatedMs = 366 * 24 * 60 * 60_000;

/** The instant (UTC ms) until which an address says that it is good, as object stores sign; null where it does not say. */
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
