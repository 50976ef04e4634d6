import type { ChargeEvidence, ReconcileSettings, Verdict } from "../charges/readings.js";
import type { Judgement } from "../charges/verdict.js";
import type { Credits } from "../money.js";
import type { Day } from "../quota/quota.js";

/**
 * The port to the spend log of one key: every paid request that this machine has sent with it, from any workspace,
 * and the key's counters as GET me showed them. Every method is one transaction.
 */
export interface SpendLog {
  /** Records a POST before it is sent, and before it is recorded anywhere else. Returns the number of its entry. */
  intend(intent: LoggedIntent): Promise<number>;
  /** Does what `intend` does, unless the limits do not cover it, counting what others have spent since: then null. */
  intendWithin(bounds: Bounds, intent: LoggedIntent): Promise<number | null>;
  /** Records the outcome of the POST. */
  answered(entry: number, answer: LoggedAnswer): Promise<void>;
  /**
   * The same POST is sent once more: until `answered` it is in flight again, and nothing that was read before counts for it.
   * False if it has an answer by now, or is proven not charged, so that its item is bought anew: then it must not be sent.
   */
  repeats(entry: number): Promise<boolean>;
  /** Records a poll of the task of an accepted POST. */
  polled(entry: number, poll: LoggedPoll): Promise<void>;
  /** Records a counter reading, taken while no POST of the key was in flight in any process. Returns its position. */
  read(counters: Counters): Promise<number>;
  /** The last position in the spend log, which grows with every write of any process. */
  seq(): Promise<number>;
  /** Everything that a judgement needs; null while there is no reading. */
  evidence(settings: ReconcileSettings): Promise<ChargeEvidence | null>;
  /**
   * Stores a judgement and starts again from its baseline. Returns false, and stores nothing, if the spend log has
   * grown past `seq`: the judgement would overwrite what another process has found since.
   */
  keep(judgement: Judgement, seq: number): Promise<boolean>;
  /**
   * Judges by what the spend log has, and stores the judgement, while no process can write; null while there is no
   * reading. With many paid requests all writers wait for long.
   */
  judgeAlone(settings: ReconcileSettings): Promise<{ evidence: ChargeEvidence; judgement: Judgement } | null>;
  /**
   * What the key was charged for requests that this machine did not send, since this workspace last bought with it
   * (`since`, UTC ms): the least that the counters show.
   */
  foreign(settings: ReconcileSettings): Promise<{ credits: Credits; since: number }>;
  /** This workspace buys, and knows of what was charged elsewhere until now. */
  knowForeign(settings: ReconcileSettings): Promise<void>;
  /** An entry of any key; null if the spend log does not have it. */
  entry(entry: number): Promise<{
    ownKey: boolean;
    verdict: Verdict | null;
    evidence: string | null;
    task: "open" | "completed" | "failed" | null;
  } | null>;
  /** The folder of another workspace whose request made this task, with any key of the service; null if none is recorded. */
  otherOwner(taskId: string): Promise<string | null>;
  /** Entries of this workspace that have no answer yet, or whose task has not ended yet. */
  open(): Promise<OpenEntry[]>;
  /**
   * Entries of this workspace, and of any that was in its place before, sent at `since` (UTC ms) or later with any key
   * of the service, that were or may have been charged and whose end is not recorded: no answer yet, no answer at all,
   * or the task is still open. Oldest first.
   */
  unended(since: number): Promise<PaidAttempt[]>;
  /**
   * The newest entry of this workspace, made after `since` (UTC ms) with any key of any service, that was or may have
   * been charged when its answer came; null if there is none.
   */
  newestPaid(since: number): Promise<Omit<PaidAttempt, "intendedAt" | "answered"> | null>;
  /**
   * What other workspaces have paid for, or may have, since then (UTC ms) with any key of the service; with `own`, what
   * this one has paid for as well. Page by page: it may be more than fits into memory.
   */
  paidElsewhere(since: number, own?: boolean): AsyncIterable<readonly PaidElsewhere[]>;
}

export interface PaidElsewhere {
  entry: number;
  itemKey: string;
  /** By the service's clock as far as it was known (UTC ms). */
  sentAt: number;
  /** The name of that workspace, and the folder in which it was last used. */
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
   * A day earlier (UTC ms by the service): requests sent by then without an answer are included in it, or were never
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
