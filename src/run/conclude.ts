import { type Attempt, TaskTaken } from "../core/ports/attempt.js";
import type { Store } from "../core/ports/store.js";
import type { RunPorts } from "./ports.js";
import { type Conclusion, loggedAnswer, loggedEnd } from "./receipts/conclusion.js";

/** Records what became of an attempt, for its item and then for the account, and returns it: see `concludeItem`. */
export async function conclude(
  { store, spendLog }: Pick<RunPorts, "store" | "spendLog">,
  attempt: Attempt,
  answered: Conclusion,
): Promise<Conclusion> {
  const concluded = await concludeItem(store, attempt, answered);
  const { event, outcome } = concluded;
  if (attempt.spendLogId !== null) await spendLog.answered(attempt.spendLogId, loggedAnswer(event, outcome));
  return concluded;
}

/**
 * Records what became of an attempt for its item, and returns it: the answer, unless the answer names the task of
 * another request. That says nothing about this request, so it counts as no answer.
 */
async function concludeItem(
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

/**
 * Recovers from a process that crashed: some of its POSTs may have reached the service. Where the receipts have the
 * answer, it counts; else the outcome is unknown. The workspace's lock is held, so no other process works on them.
 */
export async function recover(ports: Pick<RunPorts, "store" | "receipts" | "spendLog">): Promise<void> {
  const { store, receipts } = ports;
  const items = await store.interrupted();
  for (const item of items) {
    if (item.state === "unknown") continue;
    const attempt = await store.attempt(item.id);
    if (!attempt) throw new Error(`item ${item.id} is submitting without an attempt`);
    const run = await store.run(attempt.runId);
    if (!run) throw new Error(`item ${item.id} was submitted in run ${attempt.runId}, which there is not`);
    const known = await receipts.answerTo(run, item, attempt);
    const lost = { message: "the process ended before the answer was read" };
    await conclude(ports, attempt, known ?? { event: "unanswered", outcome: lost });
  }
  await bringSpendLogUpToDate(ports);
}

/** Adds to the spend log what only the workspace knows, because the process ended between the two writes. */
async function bringSpendLogUpToDate({
  spendLog,
  store,
}: Pick<RunPorts, "spendLog" | "store">): Promise<void> {
  for (const { entry, answered } of await spendLog.open()) {
    const attempt = await store.attemptOfEntry(entry);
    // Without an attempt of its item nothing was sent.
    if (!answered) {
      const charged = attempt?.charged ?? null;
      const taskId = attempt?.taskId ?? null;
      const outcome = {
        ...(charged === null || attempt?.ended === "failed" ? {} : { charged }),
        ...(taskId === null ? {} : { taskId }),
      };
      await spendLog.answered(
        entry,
        attempt?.outcome ? loggedAnswer(attempt.outcome, outcome) : { outcome: "free" },
      );
    }
    if (attempt?.ended) await spendLog.polled(entry, loggedEnd(attempt.ended, attempt));
  }
}
