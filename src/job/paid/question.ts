import type { Clock } from "../../clock.js";
import type { Credits } from "../../core/money.js";
import type { PlannedItem } from "../../core/ports/draft.js";
import type { Run } from "../../core/ports/store.js";
import type { Finding, Plan } from "../../plan/plan.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { OpenAccount } from "../../workspace/account.js";
import type { Workspace } from "../../workspace/workspace.js";
import type { PlannedKeys, Who } from "./planned-keys.js";

/**
 * One question before money: was this paid for already? The workspace's history answers it for its own items, by their
 * keys. Everything that the keys or the history do not know is asked here, before anything is bought, whatever command
 * buys it: the archive, other jobs, other users and addresses, and the spend log of this machine.
 */
export interface Question {
  who: Who;
  workspace: Pick<Workspace, "root" | "stateFile" | "outFolder">;
  account: Pick<OpenAccount, "spendLog">;
  clock: Clock;
  /** The workspace's store, when there is one, and its runs. */
  store: Pick<Store, "history" | "attemptOfEntry" | "find"> | null;
  runs: readonly Run[];
  /** What a key that is on record is in the plan. */
  keys: PlannedKeys;
  /** The run that would be continued, of any user. */
  unfinished: Run | undefined;
  /** A person has named the job, and thereby agreed to pay again. */
  agreed: boolean;
  /** What was found when the job of the sheet was looked for; null if the job is known. */
  guessed: Finding | null;
}

/** One place that may know more than the history. */
export interface PaymentSource<By = unknown> {
  /** What it knows about an item; undefined if it was not paid for there. */
  has(item: PlannedItem): By | undefined | Promise<By | undefined>;
  /** About all of its items that would be paid for again; null if they need no word. */
  finding(tally: KnownItems<By>, plan: AskedPlan): { refused: boolean; finding: Finding } | null;
}

/** The items of a plan that a source knows, with what it knows. */
export interface KnownItems<By> {
  found: { item: PlannedItem; by: By }[];
  credits: Credits;
}

export type AskedPlan = Pick<Plan, "job" | "edition" | "items" | "due" | "states" | "otherParams">;
