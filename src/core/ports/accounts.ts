import type { Endpoint } from "../../api/endpoints.js";
import type { Pacing } from "../quota/quota.js";
import type { WaitReason } from "../reason.js";
import type { Ticket } from "./send.js";

/**
 * What the client asks of the quota ledger. It is a port because client and store do not import each other; `ledgerMethods` of
 * the store has these methods, and says what each of them does.
 */
export interface QuotaLedger {
  reserve(caller: Caller, endpoint: Endpoint, claim?: Claim): Promise<Reservation>;
  answered(ticket: Ticket, isRefused?: boolean): Promise<void>;
  release(ticket: Ticket): Promise<void>;
  silence(accountId: number, ms: number | null): Promise<{ until: number; slowed: Pacing | null }>;
  past(caller: Caller): Promise<Past>;
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
