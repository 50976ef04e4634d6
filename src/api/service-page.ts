import type { PlanName, SubscriptionStatus } from "./plans.js";
import type { Category } from "./records.js";

/**
 * Requests and answers of the service's own page. Times are milliseconds since 1970, and amounts are credits. It is no part
 * of the interface: only the page that comes from the same service reads it.
 */
export interface AccountAnswer {
  account: PageAccount;
  /** Every account, the sandbox's own first. */
  accounts: { id: string; name: string | null; email: string }[];
  /** The keys of the account, good ones first, the newest of each first. */
  keys: KeyListing[];
  /** The key to show in commands: the public one, if the account has it. */
  publicKey: string | null;
  /** A command for a terminal that makes a picture. */
  firstCommand: string;
  /** The newest tasks first. */
  tasks: ShownTask[];
  /** The start of the page with older tasks; null on the last one. */
  older: number | null;
  /** What every request that changes something carries in `X-Form-Token`. */
  formToken: string;
  now: number;
}

export interface PageAccount {
  id: string;
  email: string;
  name: string | null;
  balance: number;
  creditsPerMonth: number;
  plan: PlanName;
  /** Null without a subscription. */
  subscription: SubscriptionStatus | null;
  periodEnd: number;
  cancelAtPeriodEnd: boolean;
}

/** A key as its owner sees it once it is made: everything but its value. */
export interface KeyListing {
  id: string;
  name: string;
  createdAt: number;
  /** Null while the key is good. */
  revokedAt: number | null;
  requestsCount: number;
  /** Credits. */
  used: number;
  /** The constant key that every sandbox has. */
  isPublic: boolean;
}

/** A new key. Its value is here and nowhere else: only a hash of it is stored. */
export interface NewKey {
  id: string;
  name: string;
  value: string;
}

export interface ShownTask {
  id: string;
  model: string;
  category: Category;
  status: "processing" | "completed" | "failed";
  prompt: string | null;
  /** What else was asked for, media addresses included. */
  params: [name: string, value: string][];
  error: string | null;
  /** Signed paths of the outputs, on this server. */
  outputs: string[];
  credits: number;
  createdAt: number;
}

/** The answer instead when a request is refused. */
export interface PageRefusal {
  error: { message: string };
}
