import type { ItemEvent } from "../../../core/item.js";
import type { Credits } from "../../../core/money.js";
import {
  type Attempt,
  type AttemptOutcome,
  type Intent,
  type LoggedAttempt,
  TaskTaken,
} from "../../../core/ports/attempt.js";
import type { Database, InTransaction, Script } from "../../script.js";
import { applyTransition, type Before, beforeColumns, transit } from "../transition.js";

export function attemptChanges(connection: InTransaction) {
  const { sql } = connection;
  const newest = (itemId: number) => newestOf(connection, itemId);
  return {
    *adopt(itemId: number, task: { taskId: string; charged: Credits; attempt: number }): Script<void> {
      yield* applyTransition(connection, itemId, "adopted", {
        next_at: 0,
        seen_at: null,
        polls: 0,
        note: null,
      });
      const last = yield* newest(itemId);
      if (last && last.id !== task.attempt) yield* changePlaces(connection, last, task.attempt);
      yield* sql("UPDATE attempts SET outcome = 'accepted', task_id = ?, charged = ? WHERE id = ?").run(
        task.taskId,
        task.charged,
        task.attempt,
      );
      // The task was accepted when its request was sent, not when it was found.
      yield* sql("UPDATE items SET accepted_at = ? WHERE id = ?").run(
        (yield* newest(itemId))?.intendedAt,
        itemId,
      );
    },
  };
}

/** Paid requests, from the intent to the answer, and the tasks that they led to. */
export function attemptMethods(connection: Database) {
  const { atomic, read, ask, sql, clock } = connection;
  const changes = attemptChanges(connection);
  const newest = (itemId: number) => newestOf(connection, itemId);

  return {
    /** Before a POST: makes the item `submitting` and records its attempt. */
    intend: async (itemId: number, intent: Intent): Promise<Attempt> =>
      atomic(
        function* () {
          const attempt = yield* sql(
            `INSERT INTO attempts (item_id, run_id, price, number, intended_at, sent_at, body_sha256, spend_log_id)
           SELECT id, ?, price, 1 + coalesce((SELECT max(number) FROM attempts WHERE item_id = items.id), 0), ?, ?, ?, ?
           FROM items WHERE id = ? RETURNING ${attemptColumns}`,
          ).get(
            intent.runId,
            clock.now(),
            Math.round(intent.sentAt),
            intent.bodySha256,
            intent.spendLogId,
            itemId,
          );
          yield* applyTransition(connection, itemId, "intended");
          return attempt as Attempt;
        },
        { part: `item ${itemId}` },
      ),

    /**
     * After a POST: records the outcome of the attempt and the item's next state. Rejects with TaskTaken if the task
     * belongs to another item.
     */
    conclude: async (attemptId: number, event: ItemEvent, outcome: AttemptOutcome): Promise<void> =>
      atomic(() => conclude(connection, attemptId, event, outcome), { part: `attempt ${attemptId}` }),

    /** The attempt with this spend log entry; null if it never became an attempt. */
    attemptOfEntry: (spendLogId: number): Promise<LoggedAttempt | null> =>
      read(function* () {
        const attempt = (yield* sql(`${selectAttempts} WHERE spend_log_id = ?`).get(spendLogId)) as
          | Attempt
          | undefined;
        if (!attempt) return null;
        const closed = (yield* sql("SELECT closed FROM attempts WHERE id = ?").value(attempt.id)) === 1;
        // The credits of a failed task are given back.
        const ended = attempt.charged === 0 ? "failed" : "completed";
        return { ...attempt, ended: closed ? ended : null };
      }),

    /** Whether the job's item with this key ever had the attempt of this number. */
    attempted: (jobName: string, key: string, number: number): Promise<boolean> =>
      read(function* () {
        const row = yield* sql(
          `SELECT 1 FROM attempts a JOIN items i ON i.id = a.item_id JOIN jobs j ON j.id = i.job_id
         WHERE j.name = ? AND i.key = ? AND a.number = ?`,
        ).get(jobName, key, number);
        return row !== undefined;
      }),

    /**
     * A person has found the task of a held item: the item is at the service again. If the item was submitted again, the
     * task may belong to an earlier attempt, which becomes the item's newest attempt.
     */
    adopt: async (
      itemId: number,
      task: { taskId: string; charged: Credits; attempt: number },
    ): Promise<void> => atomic(() => changes.adopt(itemId, task)),

    /** The attempt that led to the item's task. */
    attempt: (itemId: number): Promise<Attempt | null> =>
      ask(function* () {
        return (yield* newest(itemId)) ?? null;
      }),
  };
}

/** The item's attempt with the highest number. */
export function* newestOf({ sql }: Pick<InTransaction, "sql">, itemId: number): Script<Attempt | undefined> {
  const row = yield* sql(`${selectAttempts} WHERE item_id = ? ORDER BY number DESC LIMIT 1`).get(itemId);
  return row as Attempt | undefined;
}

function* conclude(
  connection: InTransaction,
  attemptId: number,
  event: ItemEvent,
  outcome: AttemptOutcome,
): Script<void> {
  const { sql, clock } = connection;
  const item = (yield* sql(itemAnswered).get(outcome.taskId ?? null, attemptId)) as Before & {
    owner: string | null;
  };
  if (outcome.taskId !== undefined && item.owner !== null) throw new TaskTaken(outcome.taskId, item.owner);
  yield* transit(connection, item, event, {
    next_at: outcome.nextAt ?? 0,
    accepted_at: event === "accepted" ? clock.now() : null,
    seen_at: null,
    polls: 0,
    note: outcome.message ?? null,
    failure_kind: outcome.failureKind ?? null,
  });
  yield* sql(
    `UPDATE attempts SET outcome = ?, answered_at = ?, status = ?, message = ?, task_id = ?, external_task_id = ?,
       charged = ?, remaining = ? WHERE id = ?`,
  ).run(
    event,
    clock.now(),
    outcome.status ?? null,
    outcome.message ?? null,
    outcome.taskId ?? null,
    outcome.externalTaskId ?? null,
    outcome.charged ?? null,
    outcome.remaining ?? null,
    attemptId,
  );
  // The answer may have been in the receipts alone while the manifest was changed.
  if (event === "refused" || event === "not_sent") yield* leaveIfVanished(connection, item.id);
}

/** The run only had to settle what the manifest no longer asks for. Nobody has agreed to buy it. */
export function* leaveIfVanished({ sql }: InTransaction, itemId: number): Script<void> {
  yield* sql("UPDATE items SET run_id = NULL WHERE id = ? AND vanished = 1").run(itemId);
}

/** The earlier attempt becomes the newest one of its item, and the newest takes its number. */
function* changePlaces({ sql }: InTransaction, newest: Attempt, earlier: number): Script<void> {
  const number = (yield* sql("SELECT number FROM attempts WHERE id = ?").value(earlier)) as number;
  const renumber = sql("UPDATE attempts SET number = ? WHERE id = ?");
  yield* renumber.run(0, earlier);
  yield* renumber.run(number, newest.id);
  yield* renumber.run(newest.number, earlier);
}

const itemAnswered = `
  SELECT ${beforeColumns}, (SELECT owner.row_id FROM attempts AS taken JOIN items AS owner ON owner.id = taken.item_id
    WHERE taken.task_id = ? LIMIT 1) AS owner
  FROM attempts JOIN items ON items.id = attempts.item_id WHERE attempts.id = ?`;
/** The columns of attempts, under the names of the fields of their records. */
const attemptColumns = `
  attempts.id, attempts.item_id AS itemId, attempts.run_id AS runId, attempts.number, attempts.intended_at AS intendedAt,
  attempts.sent_at AS sentAt, attempts.price, attempts.body_sha256 AS bodySha256, attempts.answered_at AS answeredAt,
  attempts.outcome, attempts.verdict, attempts.spend_log_id AS spendLogId, attempts.status, attempts.message,
  attempts.task_id AS taskId, attempts.external_task_id AS externalTaskId, attempts.charged,
  attempts.created_at AS createdAt, attempts.completed_at AS completedAt`;
export const selectAttempts = `SELECT ${attemptColumns} FROM attempts`;
