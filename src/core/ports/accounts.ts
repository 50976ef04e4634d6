import type { Endpoint } from "../../api/endpoints.js";
import type { PlanLimits } from "../../api/plans.js";
import type { Credits } from "../money.js";
import type { Day, OwnLimits, Pacing, Quota, WaitReason } from "../quota/quota.js";
import type { Ticket } from "./send.js";
import type { BalanceMark, Counters, SpendLog, SpendLogOwner, TakenCredits } from "./spend-log.js";

/**
 * The port to what workspaces and processes on this machine share: which key belongs to which account, and the
 * account's request ledger. Every method is one transaction.
 */
export interface Accounts {
  /** The account that a key is booked under; a new unnamed one when the key was never seen. */
  accountOf(origin: string, keyFingerprint: string): Promise<Account>;
  /**
   * GET me has named the user: gives the account its name, or joins it to the one that already has it. Throws
   * OtherUser where the account has another name.
   */
  name(accountId: number, userId: string): Promise<Account>;
  /** Sets the limits of the plan (and the user); null means unlimited. */
  setLimits(accountId: number, limits: PlanLimits): Promise<void>;
  /** The user's own limits apply from the first request, before the plan is known. A percentage needs the plan. */
  narrowLimits(accountId: number, own: Pick<OwnLimits, "rpm" | "rpd">): Promise<void>;
  /** The windows as a run sees them; `owedElsewhere` excludes the run's own needs. */
  quota(accountId: number, claimant?: string): Promise<Quota>;
  /**
   * Reserves a slot in the windows if there is one. The clock is read inside the transaction. With a claim, only if the
   * day then still holds all that this and the other runs of the account owe to their open tasks.
   */
  reserve(caller: Caller, endpoint: Endpoint, claim?: Claim): Promise<Reservation>;
  /**
   * Requests of the day that a run needs for its open tasks. A need that is not stated again is forgotten after a day.
   */
  owes(accountId: number, claim: Claim): Promise<void>;
  /** The requests made with a key so far. */
  past(caller: Caller): Promise<Past>;
  /**
   * GET me has returned how many requests the key ever made. What is beyond those of this machine since the last time
   * was made by somebody else: it is booked too. Returns how many that were.
   */
  counted(caller: Caller, told: Pick<Counters, "requests" | "over">): Promise<number>;
  /**
   * The answer came: the place is occupied until the window's length after now. One that is no refusal ends a row of
   * 429s.
   */
  answered(ticket: Ticket, isRefused?: boolean): Promise<void>;
  /** Frees the slot of a request that was never sent. */
  release(ticket: Ticket): Promise<void>;
  /**
   * A 429: nothing is sent for `ms` (or, where the service did not say, for longer each time in a row; and even where
   * it did, not for ever at once again). Where the ledger did not deserve it, the account's pacing is stepped down:
   * then `slowed` is the new one.
   */
  silence(accountId: number, ms: number | null): Promise<{ until: number; slowed: Pacing | null }>;
  /** Stores the charge of a generation in its price group. */
  charged(accountId: number, group: string, amount: Credits): Promise<void>;
  /** The highest charge that was seen for each price group of the account's service. */
  highestCharges(accountId: number): Promise<Map<string, Credits>>;
  /** What paid requests of all its keys, from all workspaces, have cost or may have that were sent on a day. */
  spentOn(accountId: number, day: Day): Promise<Credits>;
  /** What they have or may have taken from the balance since that reading. */
  takenFrom(accountId: number, mark: BalanceMark): Promise<TakenCredits>;
  /** The spend log of a known key. */
  spendLog(owner: SpendLogOwner): SpendLog;
  /** One generation of a model with its params took so long (ms). */
  lasted(accountId: number, kind: { model: string; group: string }, ms: number): Promise<void>;
  /** How long generations of these models took at the account's service, oldest first. */
  durations(
    accountId: number,
    models: readonly string[],
  ): Promise<{ model: string; group: string; ms: number }[]>;
  close(): Promise<void>;
}

/** Who calls the service: an account, with one of its keys. */
export interface Caller {
  accountId: number;
  /** Of the key. */
  fingerprint: string;
}

export interface Past {
  /** How many of its requests are over: answered, or lost so long ago that they cannot arrive any more. */
  over: number;
  /** The last position in the spend logs of all keys. */
  seq: number;
}

/**
 * A key answers for another user than before. Its spend log belongs to the first one, and payments of the two
 * could not be told apart.
 */
export class OtherUser extends Error {
  override readonly name = "OtherUser";
  constructor(
    readonly expected: string,
    readonly got: string,
    origin: string,
  ) {
    super(`the API key belongs to another user than before: expected ${expected} at ${origin}, got ${got}`);
  }
}

/** The requests that a run needs for its open tasks. */
export interface Claim {
  /** The run, by a name that no other run of the account has, in any workspace. */
  claimant: string;
  requests: number;
}

export interface Account {
  id: number;
  origin: string;
  /** The user's id at the service; null until GET me was answered. */
  userId: string | null;
}

export type Reservation =
  | { ticket: Ticket }
  /** When the next slot is free (UTC ms), and what the wait is for. */
  | { ticket: null; waitUntil: number; waitsFor: WaitReason };

/** An amount in the step of time that begins then (UTC ms). */
export interface Amount {
  at: number;
  amount: number;
}
