import { hash } from "node:crypto";
import type { PlanName, SubscriptionStatus } from "../../api/plans.js";
import type { Category } from "../../api/records.js";

/**
 * What the sandbox's world knows, and the changes it can ask for. The world only reads through `WorldState` and only
 * writes by returning changes; its caller commits them before the answer is sent.
 * Every lookup is by key or by a narrow index, so its cost does not grow with the number of tasks.
 */
export interface WorldState {
  keyByHash(hash: string): KeyRecord | undefined;
  account(id: string): AccountRecord | undefined;
  task(id: string): TaskRecord | undefined;
  /** Failed tasks of an account whose end has come and whose credits were not given back yet. */
  refundsDue(accountId: string, now: number): TaskRecord[];
  /** When the nth request (from 1) that the limiter counted arrived; undefined when it is no longer kept. */
  admittedAt(accountId: string, n: number): number | undefined;
  /** What a repeat key of an account stands for; undefined before its first use. */
  repeated(accountId: string, repeatKey: string): RepeatedTask | undefined;
  /** The token bucket of an account's minute or day; undefined before its first use. */
  bucket(accountId: string, window: RequestWindow): TokenBucket | undefined;
}

export type RequestWindow = "minute" | "day";

/** A token bucket as it was left at an instant. */
export interface TokenBucket {
  tokens: number;
  at: number;
}

/** The task that a POST with an `Idempotency-Key` made. */
export interface RepeatedTask {
  taskId: string;
  /** Of the body, which has to be the same. */
  sha256: string;
  at: number;
}

/** Amounts ending in Micro are whole millionths of a credit; times are milliseconds since 1970. */
export interface KeyRecord {
  id: string;
  accountId: string;
  name: string;
  revokedAt: number | null;
  requestsCount: number;
  usedMicro: number;
}

export interface AccountRecord {
  id: string;
  email: string;
  name: string | null;
  balanceMicro: number;
  /** Null when there is no subscription; the plan is remembered for when it comes back. */
  subscriptionStatus: SubscriptionStatus | null;
  plan: PlanName;
  creditsPerMonth: number;
  billingInterval: "month" | "year";
  periodEnd: number;
  cancelAtPeriodEnd: boolean;
  /** How many requests the limiter has counted so far. */
  admitted: number;
}

export interface TaskRecord {
  id: string;
  externalId: string;
  accountId: string;
  keyId: string;
  model: string;
  category: Category;
  /** Prompt, params and media fields as keys of one object, as GET task shows them. */
  input: Record<string, string>;
  costMicro: number;
  createdAt: number;
  /** From when on the outcome can be seen. */
  dueAt: number;
  /** Known from the start, unless inputs must be fetched first: null until they are. */
  outcome: "completed" | "failed" | null;
  error: string | null;
  /** Set by the first GET of a final state, so that a clock set back cannot undo it. */
  seenFinal: boolean;
  refunded: boolean;
  /** File extensions of the outputs, one for each. */
  outputs: string[];
  /** When the task vanishes; null if it stays. */
  goneAt: number | null;
}

export type Change =
  | { kind: "request counted"; keyId: string }
  | { kind: "request admitted"; accountId: string; n: number; at: number }
  | { kind: "bucket drawn"; accountId: string; window: RequestWindow; bucket: TokenBucket }
  | { kind: "task created"; task: TaskRecord }
  | { kind: "task charged"; accountId: string; keyId: string; micro: number }
  | {
      kind: "task refunded";
      taskId: string;
      accountId: string;
      keyId: string;
      micro: number;
      /** Whether what the key has used falls with it. */
      lowersUsed: boolean;
    }
  | { kind: "final state seen"; taskId: string }
  | {
      kind: "outcome decided";
      taskId: string;
      outcome: "completed" | "failed";
      error: string | null;
      dueAt: number;
      /** File extensions of the outputs, if they are known only now. */
      outputs?: string[];
    }
  | {
      kind: "repeat key kept";
      accountId: string;
      repeatKey: string;
      taskId: string;
      sha256: string;
      at: number;
    };

/**
 * How many entries of the log are needed at most: the largest daily limit, for two windows, because the sliding
 * counter looks at the one before as well.
 */
export const admissionsKept = 20_000;

/** How long a repeated `Idempotency-Key` is answered with the same task (ms). */
export const repeatKeysKeptMs = 7 * 24 * 60 * 60 * 1_000;

/**
 * Credits inside the sandbox are whole millionths, so that a balance is exact after any number of charges and
 * refunds; only the edges speak in decimal numbers.
 */
const perCredit = 1_000_000;

/** Decimal credits to whole millionths. */
export function toMicro(credits: number): number {
  return Math.round(credits * perCredit);
}

/** Whole millionths to decimal credits. */
export function fromMicro(micro: number): number {
  return micro / perCredit;
}

/** The only form in which the sandbox keeps a key. */
export function keyHash(key: string): string {
  return hash("sha256", key);
}

const dayMs = 24 * 60 * 60 * 1_000;

/** How long a period of a subscription lasts. */
export const periodMs: Readonly<Record<AccountRecord["billingInterval"], number>> = {
  month: 30 * dayMs,
  year: 365 * dayMs,
};

/**
 * The account with its subscription as it is at `now`. Periods end by the clock alone: an active subscription is
 * renewed for all periods that have passed, or has ended if it was to be canceled.
 */
export function asOf(account: AccountRecord, now: number): AccountRecord {
  const { subscriptionStatus, periodEnd, cancelAtPeriodEnd } = account;
  if (subscriptionStatus !== "active" || now < periodEnd) return account;
  if (cancelAtPeriodEnd) return { ...account, subscriptionStatus: "canceled" };
  const period = periodMs[account.billingInterval];
  return { ...account, periodEnd: periodEnd + Math.ceil((now - periodEnd + 1) / period) * period };
}
