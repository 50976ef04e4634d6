import type { GenerateOutcome } from "../client/answer.js";
import { rejectionKind } from "../core/failure.js";
import type { ItemEvent } from "../core/item.js";
import { pollInterval } from "../core/poll.js";
import type { AttemptOutcome } from "../core/store.js";

/** What an answer to a paid request makes of its attempt and its item. */
export interface Conclusion {
  event: ItemEvent;
  outcome: AttemptOutcome;
}

/** Pure: `now` is when the answer came (UTC ms), from which the first look at the task is counted. */
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
          nextAt: now + pollInterval(0),
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
        },
      };
  }
}

/** Code and message of a refusal in one line. */
export function refusalText(outcome: {
  status: number;
  code: string | null;
  message: string | null;
}): string {
  return [outcome.code ?? `answer ${outcome.status}`, outcome.message].filter(Boolean).join(": ");
}
