import type { Verdict } from "../charges/readings.js";
import type { FailureKind } from "../failure.js";
import type { ItemEvent } from "../item.js";
import type { Credits } from "../money.js";

/** One paid request of an item: what is recorded before it is sent, and its outcome. */

export interface Intent {
  runId: number;
  /** The latest time at which it can be sent, by the service's clock if known (UTC ms). */
  sentAt: number;
  /** SHA-256 of the request's body, which identifies it as evidence. */
  bodySha256: string;
  /** Its entry in the account's spend log; null if the request is known from another source. */
  spendLogId: number | null;
}

export interface Attempt {
  id: number;
  itemId: number;
  /** The run in which it was sent. Its item may have moved to a later run of the same job. */
  runId: number;
  number: number;
  /** When it was recorded, by this machine's clock (UTC ms). */
  intendedAt: number;
  /** When it was sent, by the service's clock as far as it was known (UTC ms). */
  sentAt: number;
  /** Its price at the time: the item's price may have changed since. */
  price: Credits;
  /** SHA-256 of the request's body, the evidence that names it. */
  bodySha256: string;
  answeredAt: number | null;
  outcome: ItemEvent | null;
  /** For an attempt without an answer: whether it was charged; null while that is unknown. */
  verdict: Verdict | null;
  /** Null for attempts that are in no spend log. */
  spendLogId: number | null;
  status: number | null;
  message: string | null;
  taskId: string | null;
  externalTaskId: string | null;
  charged: Credits | null;
  createdAt: string | null;
  completedAt: string | null;
}

export interface LoggedAttempt extends Attempt {
  /** How its task ended; null while it has not. */
  ended: "completed" | "failed" | null;
}

export interface AttemptOutcome {
  status?: number;
  message?: string;
  taskId?: string;
  externalTaskId?: string;
  charged?: Credits;
  remaining?: Credits;
  /** The service itself said, in a complete answer, that the generation failed to start. */
  completeError?: boolean;
  nextAt?: number;
  failureKind?: FailureKind;
}

/** What an answer to a paid request means for its attempt and its item. */
export interface Conclusion {
  event: ItemEvent;
  outcome: AttemptOutcome;
}

/**
 * A task belongs to one request. An answer that names the task of an earlier request is not this request's own:
 * something between this machine and the service has repeated an earlier answer.
 */
export class TaskTaken extends Error {
  override readonly name = "TaskTaken";
  constructor(
    readonly taskId: string,
    /** The row id of the item whose request led to it. */
    readonly owner: string,
  ) {
    super(`expected a task of its own, got ${taskId}, which is that of an earlier request (${owner})`);
  }
}
