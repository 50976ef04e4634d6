import { defaultReconcile } from "../charges/readings.js";
import { type Credits, noCredits } from "../money.js";
import type { Forecast } from "../pace/forecast.js";
import type { PollProfile } from "../pace/pressure.js";

/** What a run does when the balance does not cover its plan. */
export const insufficientChoices = ["refuse", "fit", "stop", "wait"] as const;

/** What a run does when it cannot go on for now. */
export const stopOrWait = ["stop", "wait"] as const;
export type StopOrWait = (typeof stopOrWait)[number];

/** What a command does when another run has the workspace. */
export const lockedChoices = ["fail", "wait", "skip"] as const;
export type LockedChoice = (typeof lockedChoices)[number];

/** The options of a run, which a resume uses again. */
export interface RunOptions {
  /** In millionths of a credit. */
  maxCredits: Credits | null;
  /** The cap for each model, in millionths of a credit; other models continue. */
  modelCaps?: Readonly<Record<string, Credits>>;
  /** The balance that must remain on the account. */
  keepCredits?: Credits;
  /** The daily cap for all runs of the account together. */
  dailyCredits?: Credits;
  /** How many items, or what percentage, may fail before submitting stops; null is unlimited. */
  maxFailures: { count: number } | { percent: number } | null;
  /** How often a task that failed at the provider is retried automatically. */
  retries: number;
  rpm?: number;
  rpd?: number;
  /** The percentage of the account's requests that may be used. */
  share?: number;
  /** How eagerly to poll; if absent, the scarcest resource decides. */
  poll?: PollProfile;
  /** The forecast from the start of the run. */
  forecast?: Forecast;
  lanes?: number;
  downloads: number;
  onInsufficient: (typeof insufficientChoices)[number];
  onDailyLimit: StopOrWait;
  /** When submitting ends: local time of day, `HH:MM`, or an ISO 8601 instant. */
  until: string | null;
  /** When submitting ends, in ms from the start of each execution. */
  maxDurationMs: number | null;
  /** How long the run stays open for overdue tasks alone, in ms. */
  overdueWaitMs: number;
  /** One item of each model and set of params is made before the others. */
  canary?: true;
  /** A JSON file beside each output. */
  sidecars?: boolean;
  /** Where local inputs are published, by a flag or the job file, and how long (ms) their addresses have to be good. */
  publish?: string;
  publishMs?: number;
  /** A bucket that gets a copy of each output: `s3://bucket/prefix`. */
  archive?: string;
  /** The bucket alone keeps the outputs; each leaves the disk once it is there. */
  archiveOnly?: true;
  /** What the shell runs after each archived file, and once when everything is archived; an empty text runs nothing. */
  afterFile?: string;
  afterSet?: string;
  /** How long (ms) such a command may take. */
  afterMs?: number;
  /** Whether the run stays open until unanswered requests are settled. */
  settle: StopOrWait;
  /** The two times (ms) after its end at which an unanswered request must show no charge. */
  settleMs: readonly [number, number];
  /** How many requests that one execution lost may lack a verdict before submitting pauses; the lanes decide if absent. */
  unsettledMax?: number;
  /** Whether a complete GENERATION_ERROR counts as not charged. */
  errorIsFree: boolean;
  /** Credits that may be spent automatically on a second attempt for items whose first charge was lost. */
  orphanCredits: Credits;
  sandbox: boolean;
  /** The flags that the manifest was read with, as they were given: `[["--repair"], ["--delimiter", "tab"]]`. */
  sheetFlags?: readonly (readonly string[])[];
  /** What the manifest's file held when it was read, as a hash; absent if it was no file. */
  manifestSha256?: string;
  /** The run was rebuilt: its own options are lost, and it submits nothing until it gets a cap. */
  rebuilt?: true;
  /** Defaults of the manifest that were left out of requests for a model, which did not take them then, by model. */
  leftOut?: Readonly<Record<string, readonly string[]>>;
  /** Who began the run, and on which machine; the schedule and its due time (ISO 8601) if a schedule did. */
  beganBy?: { user: string; host: string; schedule?: string; due?: string };
}

/** What a run does unless it is told otherwise. The flags of `run` have the same defaults. */
export const defaultRunOptions: Omit<RunOptions, "sandbox"> = {
  maxCredits: null,
  maxFailures: null,
  retries: 1,
  downloads: 4,
  onInsufficient: "refuse",
  onDailyLimit: "stop",
  until: null,
  maxDurationMs: null,
  overdueWaitMs: 0,
  settle: "stop",
  ...defaultReconcile,
  orphanCredits: noCredits,
};

/** The options of a run that is to submit nothing. */
export const nothingToSubmit: Omit<RunOptions, "sandbox"> = {
  ...defaultRunOptions,
  maxCredits: noCredits,
  retries: 0,
  onInsufficient: "stop",
};

/**
 * When submitting ends (UTC ms): the earlier of `--until` (an instant, or the next such time of day here) and
 * `--max-duration`.
 */
export function deadlineOf(options: Pick<RunOptions, "until" | "maxDurationMs">, now: number): number | null {
  const times = [
    ...(options.until === null ? [] : [endOf(options.until, now)]),
    ...(options.maxDurationMs === null ? [] : [now + options.maxDurationMs]),
  ];
  return times.length === 0 ? null : Math.min(...times);
}

/**
 * The options of a run that a person continues: an `--until` instant that has passed has ended the run once, and must not
 * keep what is ordered now from being submitted.
 */
export function withoutPastEnd(options: RunOptions, now: number): RunOptions {
  const { until } = options;
  return until?.includes("T") && Date.parse(until) <= now ? { ...options, until: null } : options;
}

function endOf(until: string, now: number): number {
  return until.includes("T") ? Date.parse(until) : nextTimeOfDay(until, now);
}

/** The next moment after `now` at which clocks here show `HH:MM`; of a time that they show twice in a night, the first. */
function nextTimeOfDay(time: string, now: number): number {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  const date = new Date(now);
  date.setHours(hours, minutes, 0, 0);
  if (date.getTime() <= now) {
    // Set again for the next day: on the day of a clock change a day is not 24 hours.
    date.setDate(date.getDate() + 1);
    date.setHours(hours, minutes, 0, 0);
  }
  return date.getTime();
}
