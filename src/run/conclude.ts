import { rowOf } from "../api/errors.js";
import { serviceTime } from "../api/times.js";
import type { GenerateOutcome } from "../client/answer.js";
import { rejectionKind } from "../core/failure.js";
import { IllegalTransition, type ItemEvent } from "../core/item.js";
import { type Credits, noCredits } from "../core/money.js";
import { pollMsMin } from "../core/pace/poll.js";
import { type Attempt, type AttemptOutcome, type Conclusion, TaskTaken } from "../core/ports/attempt.js";
import type { LoggedAnswer, LoggedPoll } from "../core/ports/spend-log.js";
import type { Item, Run } from "../core/ports/store.js";
import type { Store } from "../store/workspace/workspace.js";
import type { RunPorts } from "./ports.js";

/** Records the outcome of an attempt, for its item and then for the account, and returns it: see `concludeItem`. */
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
 * Records the outcome of an attempt for its item, and returns it: the answer, unless the answer names the task of
 * another request. Such an answer says nothing about this request, so it counts as no answer.
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
 * Recovers from a process that crashed: some of its POSTs may have reached the service. If the receipts have the
 * answer, it counts; otherwise the outcome is unknown. The caller holds the workspace's lock, so no other process works
 * on these items.
 */
export async function recover(
  ports: Pick<RunPorts, "store" | "receipts" | "spendLog">,
  runId: number,
): Promise<void> {
  const { store, receipts } = ports;
  for (const item of await store.items(runId, ["held"])) await takeAnswer(ports, item);
  for (const item of await store.interrupted()) {
    if (item.state === "unknown") {
      await takeAnswer(ports, item);
      continue;
    }
    const attempt = await store.attempt(item.id);
    if (!attempt) throw new Error(`item ${item.id} is submitting without an attempt`);
    const run = await store.run(attempt.runId);
    if (!run) throw new Error(`item ${item.id} was submitted in run ${attempt.runId}, which does not exist`);
    const known = await receipts.answerTo(run, item, attempt);
    const lost = { message: "the process ended before the answer was read" };
    await conclude(ports, attempt, known ?? { event: "unanswered", outcome: lost });
  }
  await bringSpendLogUpToDate(ports);
}

/**
 * If a database went away while a request was answered, the answer is in the receipts of the folder that sent it, and
 * another folder that went on with the run without it left the item unknown or held.
 */
async function takeAnswer(
  ports: Pick<RunPorts, "store" | "receipts" | "spendLog">,
  item: Item,
): Promise<void> {
  const { store, receipts } = ports;
  const attempt = await store.attempt(item.id);
  if (!attempt || attempt.taskId !== null || attempt.outcome !== "unanswered") return;
  const run = await store.run(attempt.runId);
  const outcome = run && (await receipts.answerTo(run, item, attempt))?.outcome;
  if (outcome) await adoptAnswer(ports, item, attempt, outcome, "its answer is in the receipts");
}

/**
 * An answer that came by another way than to its own request. Nothing is changed, and false returned, if it names no task or that
 * of another item.
 */
export async function adoptAnswer(
  { store, spendLog }: Pick<RunPorts, "store" | "spendLog">,
  item: Item,
  attempt: Attempt,
  { taskId, charged = item.price }: AttemptOutcome,
  note: string,
): Promise<boolean> {
  if (taskId === undefined || (await store.find(taskId)).length > 0) return false;
  // From now on the charge is explained, and a refund is expected if the task fails.
  if (attempt.spendLogId !== null)
    await spendLog.answered(attempt.spendLogId, { outcome: "accepted", charged, taskId });
  // The key's counters may have settled it meanwhile.
  if ((await store.item(item.id)).state === "unknown")
    await store.giveVerdict(item.id, "charged", note).catch(unlessSettled);
  await store.adopt(item.id, { taskId, charged, attempt: attempt.id });
  return true;
}

function unlessSettled(error: unknown): void {
  if (!(error instanceof IllegalTransition && error.from === "held")) throw error;
}

/** Adds to the spend log what only the workspace knows, because the process ended between the two writes. */
async function bringSpendLogUpToDate({
  spendLog,
  store,
}: Pick<RunPorts, "spendLog" | "store">): Promise<void> {
  const open = await spendLog.open();
  if (open.length === 0) return;
  const began = beginningOf(await store.runs());
  for (const { entry, intendedAt, answered } of open) {
    const attempt = await store.attemptOfEntry(entry);
    if (!answered) {
      const charged = attempt?.charged ?? null;
      const taskId = attempt?.taskId ?? null;
      const outcome = {
        ...(charged === null || attempt?.ended === "failed" ? {} : { charged }),
        ...(taskId === null ? {} : { taskId }),
      };
      await spendLog.answered(
        entry,
        attempt?.outcome ? loggedAnswer(attempt.outcome, outcome) : unrecorded(intendedAt, began),
      );
    }
    if (attempt?.ended) await spendLog.polled(entry, loggedEnd(attempt.ended, attempt));
  }
}

/**
 * The outcome of an entry that no item of the workspace has. Nothing is sent before the item has it, so nothing was sent;
 * but an entry that is older than the history may be that of an item that was lost with an earlier one.
 */
function unrecorded(intendedAt: number, began: number): LoggedAnswer {
  return intendedAt < began ? { outcome: "unknown", completeError: false } : { outcome: "free" };
}

/** When a workspace's history began (UTC ms): what was sent earlier may have been recorded in one that was lost. */
export function beginningOf(runs: readonly Pick<Run, "startedAt">[]): number {
  return Math.min(...runs.map(({ startedAt }) => startedAt));
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

/** The outcome of an attempt as the account's spend log records it. */
function loggedAnswer(event: ItemEvent, outcome: AttemptOutcome): LoggedAnswer {
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
  const time = serviceTime(facts.completedAt ?? "");
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
