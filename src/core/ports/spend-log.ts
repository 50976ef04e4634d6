import type { Credits } from "../money.js";
import type { Day } from "../quota/quota.js";

/** What is written to the spend log, and what it answers. */

export interface PaidElsewhere {
  entry: number;
  itemKey: string;
  /** By the service's clock as far as it was known (UTC ms). */
  sentAt: number;
  /** The name of the workspace that paid, and the folder in which it was last used. */
  workspace: string;
  root: string;
  /** It has no answer, and may have been charged. */
  isInDoubt: boolean;
}

/** An entry whose request has no answer on record, or whose task has not ended. */
export interface OpenEntry {
  entry: number;
  /** By this machine's clock (UTC ms). */
  intendedAt: number;
  /** Whether the request has a recorded outcome, which may be that no answer came. */
  answered: boolean;
}

export interface PaidAttempt extends OpenEntry {
  itemKey: string;
  /** By the service's clock as far as it was known (UTC ms). */
  sentAt: number;
  /** Null if no task is known. */
  taskId: string | null;
}

/** The owner of the spend log, and the workspace that writes to it. */
export interface SpendLogOwner {
  origin: string;
  /** Of the key. */
  fingerprint: string;
  /** The name of the workspace. */
  workspace: string;
}

export interface LoggedIntent {
  itemKey: string;
  /** Its expected cost. */
  price: Credits;
  /** The latest time at which it can be sent, by the service's clock if known (UTC ms). */
  at: number;
}

/** The limits on paid requests of all of the account's keys, from all workspaces; null for none. */
export interface Bounds {
  daily: DailyCap | null;
  kept: KeepCreditsCap | null;
}

/** The daily cap of the account. */
interface DailyCap {
  most: Credits;
  day: Day;
}

/** How much may be taken from a balance that was read, and which requests that balance already includes. */
export interface KeepCreditsCap {
  most: Credits;
  mark: BalanceMark;
}

/** Which of the account's paid requests a balance that was read includes. */
export interface BalanceMark {
  /** The last position when GET me was sent: requests answered by then were charged by then. */
  seq: number;
  /** The position of the reading itself, if it was recorded: charges that it shows are in the balance. */
  reading: number | null;
  /**
   * A day before GET me was sent (UTC ms by the service): requests sent by then without an answer are included in it, or were never
   * charged.
   */
  dayBefore: number;
}

/** What the account's paid requests have taken, or may have taken, from a balance since it was read. */
export interface TakenCredits {
  /** Those that were started since. */
  since: Credits;
  /** Those that were started before: in flight then, or in doubt for less than a day. */
  before: Credits;
}

export type LoggedAnswer =
  /** Not sent, or refused: nothing can have been charged. */
  | { outcome: "free" }
  | { outcome: "accepted"; charged: Credits | null; taskId?: string }
  /** `completeError`: the service itself answered, completely, that it failed. */
  | { outcome: "unknown"; completeError: boolean };

export type LoggedPoll =
  | { task: "open" }
  /** `endedAt` is the service's time (UTC ms). Null if the service did not state it; then the known charge stands. */
  | { task: "completed"; charged: Credits | null; endedAt: number | null }
  | { task: "failed"; charged: Credits; endedAt: number | null };

/** GET me's counters of one key. */
export interface Counters {
  used: Credits;
  requests: number;
  /** Requests of this machine that were over when GET me was sent. */
  over: number;
  /** The service's clock when it answered (UTC ms); null if the service did not state it. */
  servedAt: number | null;
}
