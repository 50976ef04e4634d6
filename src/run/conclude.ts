import type { Attempt } from "../core/ports/attempt.js";
import { TaskTaken } from "../core/ports/attempt.js";
import type { Store } from "../core/ports/store.js";
import type { RunPorts } from "./ports.js";
import { bookedAnswer, type Conclusion } from "./receipts/conclusion.js";

/** Records what became of an attempt, for its item and then for the account, and returns it: see `concludeItem`. */
export async function conclude(
  { store, books }: Pick<RunPorts, "store" | "books">,
  attempt: Attempt,
  answered: Conclusion,
): Promise<Conclusion> {
  const concluded = await concludeItem(store, attempt, answered);
  const { event, outcome } = concluded;
  if (attempt.bookEntry !== null) await books.answered(attempt.bookEntry, bookedAnswer(event, outcome));
  return concluded;
}

/**
 * Records what became of an attempt for its item, and returns it: the answer, unless the answer names the task of another
 * request. That tells nothing of this request, so it counts as no answer.
 */
export async function concludeItem(
  store: Pick<Store, "conclude">,
  attempt: Attempt,
  answered: Conclusion,
): Promise<Conclusion> {
  try {
    await store.conclude(attempt.id, answered.event, answered.outcome);
    return answered;
  } catch (error) {
    if (!(error instanceof TaskTaken)) throw error;
    const unanswered = withoutTask(answered, error);
    await store.conclude(attempt.id, unanswered.event, unanswered.outcome);
    return unanswered;
  }
}

function withoutTask({ outcome: { status } }: Conclusion, { taskId, owner }: TaskTaken): Conclusion {
  const message = `the answer names task ${taskId}, which is that of an earlier request (${owner})`;
  return { event: "unanswered", outcome: { message, ...(status === undefined ? {} : { status }) } };
}
