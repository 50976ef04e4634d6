import type { Endpoint } from "../../api/endpoints.js";
import type { PlanLimits } from "../../api/plans.js";
import type { Credits } from "../money.js";
import type { Day, OwnLimits, Pacing, Quota } from "../quota/quota.js";
import type { WaitReason } from "../reason.js";
import type { Ticket } from "./send.js";
import type { BalanceMark, Counters, SpendLog, SpendLogOwner, TakenCredits } from "./spend-log.js";

/**
 * The port to what workspaces and processes on this machine share: which key belongs to which account, and the
 * account's request ledger. Every method is one transaction.
 */
export interface Accounts extends PlacesPort {
  /** The account of a key; a new unnamed account if the key was never seen before. */
  accountOf(origin: string, keyFingerprint: string): Promise<Account>;
  /**
   * GET me has named the user: names the account, or joins it to the account that already has this name. Throws
   * OtherUser if the account has another name.
   */
  name(accountId: number, userId: string): Promise<Account>;
  /** Sets the limits of the plan, for all processes; null means unlimited. */
  setLimits(accountId: number, limits: PlanLimits): Promise<void>;
  /**
   * The user's own limits, which this process keeps to from then on, whatever the plan is, in place of those before. They
   * are not stored: another command has others, or none.
   */
  narrowLimits(accountId: number, own: OwnLimits): Promise<void>;
  /** The windows as a run sees them; `owedElsewhere` excludes the run's own needs. */
  quota(accountId: number, claimant?: string): Promise<Quota>;
  /**
   * Reserves a slot in the windows if there is one. The clock is read inside the transaction. With a claim, only if the
   * day then still holds all that this and the other runs of the account owe to their open tasks.
   */
  reserve(caller: Caller, endpoint: Endpoint, claim?: Claim): Promise<Reservation>;
  /**
   * States how many of the day's requests a run needs for its open tasks. A need that is not stated again expires after
   * a day.
   */
  owes(accountId: number, claim: Claim): Promise<void>;
  /** The requests made with a key so far. */
  past(caller: Caller): Promise<Past>;
  /**
   * GET me has returned how many requests the key has ever made. Requests since the last time that this machine did not
   * make were made by somebody else: they are counted too. Returns their number.
   */
  counted(caller: Caller, counters: Pick<Counters, "requests" | "over">): Promise<number>;
  /**
   * The answer came: the slot stays used until the window's length after now. An answer other than a 429 ends a row of
   * 429s.
   */
  answered(ticket: Ticket, isRefused?: boolean): Promise<void>;
  /** Frees the slot of a request that was never sent. */
  release(ticket: Ticket): Promise<void>;
  /**
   * A 429: nothing is sent for `ms`, or longer each time in a row if the service named no delay; a service that keeps
   * refusing is left alone for longer even if it named one. If the ledger does not explain the 429, the account moves
   * to the next pacing, and `slowed` is that pacing.
   */
  silence(accountId: number, ms: number | null): Promise<{ until: number; slowed: Pacing | null }>;
  /** Forgets the pause that the service asked for. Returns until when it was (UTC ms); null if there is none. */
  forgetPause(accountId: number): Promise<number | null>;
  /** Stores the charge of a generation in its price group. */
  charged(accountId: number, group: string, amount: Credits): Promise<void>;
  /** The list prices of models, as the service has just told them. A charge below a list price that has risen is forgotten. */
  listed(accountId: number, prices: ReadonlyMap<string, Credits>): Promise<void>;
  /** Requests for these models leave out these defaults, because the service does not take them now. */
  leftOut(accountId: number, params: Readonly<Record<string, readonly string[]>>): Promise<void>;
  /** The defaults that requests of this machine have ever left out, by model of the account's service. */
  everLeftOut(accountId: number): Promise<Map<string, Set<string>>>;
  /** The highest charge seen for each price group of the account's service. */
  highestCharges(accountId: number): Promise<Map<string, Credits>>;
  /**
   * What the paid requests of a day have cost or may have cost, for all keys of the account and from all workspaces.
   */
  spentOn(accountId: number, day: Day): Promise<Credits>;
  /** What they have taken, or may have taken, from the balance since that reading. */
  takenFrom(accountId: number, mark: BalanceMark): Promise<TakenCredits>;
  /** The spend log of a known key. */
  spendLog(owner: SpendLogOwner): SpendLog;
  /** One generation of a model with its params took this long (ms). */
  lasted(accountId: number, kind: { model: string; group: string }, ms: number): Promise<void>;
  /** How long generations of these models took at the account's service, oldest first. */
  durations(
    accountId: number,
    models: readonly string[],
  ): Promise<{ model: string; group: string; ms: number }[]>;
  close(): Promise<void>;
}

/** Where workspaces and services are now. */
export interface PlacesPort {
  /** A workspace is used in this place, from which other workspaces can name it. */
  usedIn(workspace: LoggedWorkspace): Promise<void>;
  /** The name of the service at an address: the address, unless a person has said that it is the same as an earlier one. */
  serviceAt(address: string): Promise<string>;
  /**
   * The service at `address` is the one that this user knows by `origin`, and has moved. Returns how many paid requests
   * were sent to the new address as to another service; null, and nothing is changed, if the user is not known there.
   */
  sameService(move: { address: string; origin: string; user: string }): Promise<number | null>;
}

/** A workspace as the spend log knows it. */
export interface LoggedWorkspace {
  /** Its id, which moves with it; the schema of its database; or its state file, while it has no id. */
  name: string;
  /** Its state file, or the schema of its database. */
  state: string;
  /** Its folder. */
  root: string;
}

/** Who calls the service: an account, with one of its keys. */
export interface Caller {
  accountId: number;
  /** Of the key. */
  fingerprint: string;
}

export interface Past {
  /** How many of its requests are over: answered, or lost so long ago that they can no longer arrive. */
  over: number;
  /** The last position in the spend logs of all keys. */
  seq: number;
}

/**
 * A key answers for another user than before. Its spend log belongs to the first user, and the payments of the two
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
  /** A name of the run that no other run of the account has, in any workspace. */
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

/** An amount in the interval that starts at this time (UTC ms). */
export interface Amount {
  at: number;
  amount: number;
}
