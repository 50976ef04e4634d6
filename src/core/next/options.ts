import type { Credits } from "../money.js";
import type { Forecast } from "../pace/forecast.js";
import type { PollProfile } from "../pace/pressure.js";

/** The options that a resume goes on with. */
export interface RunOptions {
  /** In millionths of a credit. */
  maxCredits: Credits | null;
  /** The same for the items of one model; the others go on. */
  modelCaps?: Readonly<Record<string, Credits>>;
  /** The balance that must be left on the account. */
  keepCredits?: Credits;
  /** What all runs of the account together may spend in a day. */
  dailyCredits?: Credits;
  /** How many items, or what share of them, may fail before nothing more is submitted; null is any number. */
  maxFailures: { count: number } | { percent: number } | null;
  /** How often a task that failed at the provider is tried again by itself. */
  retries: number;
  rpm?: number;
  rpd?: number;
  /** The share of the account's requests that is used, in percent. */
  share?: number;
  /** How eagerly to look at tasks; left out, what is short decides. */
  poll?: PollProfile;
  /** What was expected of the run when it began. */
  forecast?: Forecast;
  lanes?: number;
  downloads: number;
  onInsufficient: "refuse" | "fit" | "stop" | "wait";
  onDailyLimit: "stop" | "wait";
  /** Local time of day, `HH:MM`, or an instant in ISO 8601, after which nothing more is submitted. */
  until: string | null;
  /** The same as a duration from the start of each execution, in ms. */
  maxDurationMs: number | null;
  /** How long the run stays open for overdue tasks alone, in ms. */
  overdueWaitMs: number;
  /** A JSON file beside each output. */
  sidecars?: boolean;
  /** Whether the run stays open until what became of unanswered requests is known. */
  settle: "stop" | "wait";
  /** How long after its end such a request must show no charge: twice, in ms. */
  settleMs: readonly [number, number];
  /** How many of them may be without a verdict before submitting waits. */
  unsettledMax: number;
  /** Whether a complete GENERATION_ERROR is taken for not charged. */
  errorIsFree: boolean;
  /** Credits that may be spent a second time, by itself, on items whose first charge came to nothing. */
  orphanCredits: Credits;
  sandbox: boolean;
}
