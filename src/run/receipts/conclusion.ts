import { rowOf } from "../../api/errors.js";
import type { GenerateOutcome } from "../../client/answer.js";
import { rejectionKind } from "../../core/failure.js";
import type { ItemEvent } from "../../core/item.js";
import { type Credits, noCredits } from "../../core/money.js";
import { pollMsMin } from "../../core/pace/poll.js";
import type { AttemptOutcome } from "../../core/ports/attempt.js";
import type { LoggedAnswer, LoggedPoll } from "../../core/ports/spend-log.js";

/** What an answer to a paid request means for its attempt and its item. */
export interface Conclusion {
  event: ItemEvent;
  outcome: AttemptOutcome;
}

/** Pure: `now` is when the answer came (UTC ms), from which the first poll is counted. */
export function conclusionOf(outcome: GenerateOutcome, now: number): Conclusion {
  switch (outcome.kind) {
    case "accepted":
      return {
        event: "accepted",
        outcome: {
          status: outcome.status,
          taskId: outcome.taskId,
          ...(outcome.externalTaskId === null ? {} : { externalTaskId: outcome.externalTaskId }),
          ...(outcome.charged === null ? {} : { charged: outcome.charged }),
          ...(outcome.remaining === null ? {} : { remaining: outcome.remaining }),
          nextAt: now + pollMsMin,
        },
      };
    case "refused":
      return { event: "refused", outcome: { status: outcome.status, message: refusalText(outcome) } };
    case "rejected":
      return {
        event: "rejected",
        outcome: {
          status: outcome.status,
          message: refusalText(outcome),
          failureKind: rejectionKind(outcome.code, outcome.message),
        },
      };
    case "not_sent":
      return { event: "not_sent", outcome: { message: outcome.reason } };
    case "unknown":
      return {
        event: "unanswered",
        outcome: {
          message: outcome.reason,
          ...(outcome.status === undefined ? {} : { status: outcome.status }),
          ...(rowOf(outcome.code)?.isCompleteError ? { completeError: true } : {}),
        },
      };
  }
}

/** The same for the account's spend log. */
export function loggedAnswer(event: ItemEvent, outcome: AttemptOutcome): LoggedAnswer {
  if (event === "accepted") {
    const { charged = null, taskId } = outcome;
    return { outcome: "accepted", charged, ...(taskId === undefined ? {} : { taskId }) };
  }
  if (event === "unanswered") return { outcome: "unknown", completeError: outcome.completeError ?? false };
  return { outcome: "free" };
}

/** The end of a task for the account's spend log. */
export function loggedEnd(
  task: "completed" | "failed",
  facts: { charged: Credits | null; completedAt: string | null },
): LoggedPoll {
  const time = Date.parse(facts.completedAt ?? "");
  const endedAt = Number.isNaN(time) ? null : time;
  if (task === "completed") return { task, charged: facts.charged, endedAt };
  return { task, charged: facts.charged ?? noCredits, endedAt };
}

/** Code and message of a refusal in one line. */
export function refusalText(outcome: {
  status: number;
  code: string | null;
  message: string | null;
}): string {
  return [outcome.code ?? `answer ${outcome.status}`, outcome.message].filter(Boolean).join(": ");
}
