import type { ItemEvent } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import { type Attempt, type AttemptOutcome, TaskTaken } from "../../core/ports/attempt.js";
import type { Store } from "../../core/ports/store.js";
import type { AsScript, InTransaction, Script } from "../script.js";
import { isLost, isUndecided, newestNumber } from "./lost-requests.js";
import { applyTransition, type Before, beforeColumns, type RootedDatabase, transit } from "./transition.js";

/** Attempts, and the tasks that they led to. */
type AttemptMethods = Pick<
  Store,
  | "intend"
  | "conclude"
  | "giveVerdict"
  | "lostInARow"
  | "resubmitted"
  | "newestPaid"
  | "attemptOfEntry"
  | "attempted"
  | "adopt"
  | "attempt"
  | "orphans"
  | "lastBalance"
>;

type AttemptChanges = { [Name in "adopt"]: AsScript<Store[Name]> };

export function attemptChanges(connection: InTransaction): AttemptChanges {
  const { sql } = connection;
  const newest = (itemId: number) => newestOf(connection, itemId);
  return {
    *adopt(itemId, task) {
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

export function attemptMethods(connection: RootedDatabase): AttemptMethods {
  const { atomic, read, ask, sql, clock } = connection;
  const changes = attemptChanges(connection);
  const newest = (itemId: number) => newestOf(connection, itemId);

  return {
    intend: async (itemId, intent) =>
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

    conclude: async (attemptId, event, outcome) =>
      atomic(() => conclude(connection, attemptId, event, outcome), { part: `attempt ${attemptId}` }),

    giveVerdict: async (itemId, verdict, note, { nextAt = 0, isGivenUp = false } = {}) =>
      atomic(function* () {
        if (isGivenUp)
          yield* applyTransition(connection, itemId, "given_up", { note, failure_kind: "provider" });
        else yield* applyTransition(connection, itemId, verdict, { next_at: nextAt, note });
        yield* sql("UPDATE attempts SET verdict = ? WHERE id = ?").run(verdict, (yield* newest(itemId))?.id);
        if (verdict === "not_charged") yield* leaveIfVanished(connection, itemId);
      }),

    lostInARow: (itemId) =>
      read(function* () {
        return (yield* sql(
          `SELECT count(*) FROM attempts WHERE item_id = @itemId AND outcome = 'unanswered' AND number > coalesce(
             (SELECT max(number) FROM attempts WHERE item_id = @itemId AND outcome IN ('accepted', 'rejected')), 0)`,
        ).value({ itemId })) as number;
      }),

    resubmitted: (runId) =>
      read(function* () {
        const { sum } = (yield* sql(
          `SELECT coalesce(sum(a.price), 0) AS sum FROM attempts a JOIN items i ON i.id = a.item_id
         WHERE ? IN (a.run_id, i.run_id) AND ${isLost("a")}
           AND (i.state NOT IN ('held', 'dropped') OR a.number < ${newestNumber("i")})`,
        ).get(runId)) as { sum: number };
        return sum as Credits;
      }),

    newestPaid: (origin) =>
      read(function* () {
        const newest = yield* sql(
          `SELECT a.spend_log_id AS entry, a.sent_at AS "sentAt" FROM attempts a JOIN runs r ON r.id = a.run_id
         WHERE a.outcome = 'accepted' AND a.spend_log_id IS NOT NULL AND r.origin = ? ORDER BY a.id DESC LIMIT 1`,
        ).get(origin);
        return (newest as { entry: number; sentAt: number } | undefined) ?? null;
      }),

    attemptOfEntry: (spendLogId) =>
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

    attempted: (jobName, key, number) =>
      read(function* () {
        const row = yield* sql(
          `SELECT 1 FROM attempts a JOIN items i ON i.id = a.item_id JOIN jobs j ON j.id = i.job_id
         WHERE j.name = ? AND i.key = ? AND a.number = ?`,
        ).get(jobName, key, number);
        return row !== undefined;
      }),

    adopt: async (itemId, task) => atomic(() => changes.adopt(itemId, task)),

    attempt: (itemId) =>
      ask(function* () {
        return (yield* newest(itemId)) ?? null;
      }),

    lastBalance: (runId, since) =>
      read(function* () {
        const row = (yield* sql(newestBalance).get(runId, since)) as { remaining: Credits } | undefined;
        return row?.remaining ?? null;
      }),

    orphans: (of) =>
      read(function* () {
        const rows = "item" in of ? yield* sql(orphansOfItem).all(of.item) : yield* sql(orphansOfRun).all(of);
        return rows as Attempt[];
      }),
  };
}

function* newestOf({ sql }: Pick<InTransaction, "sql">, itemId: number): Script<Attempt | undefined> {
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
function* leaveIfVanished({ sql }: InTransaction, itemId: number): Script<void> {
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

const newestBalance = `
  SELECT remaining FROM attempts WHERE run_id = ? AND answered_at >= ? AND remaining IS NOT NULL
  ORDER BY answered_at DESC, id DESC LIMIT 1`;

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

const isOrphan = isLost("attempts");
const orphansOfItem = `${selectAttempts} WHERE attempts.item_id = ? AND ${isOrphan} ORDER BY attempts.number`;
// The lost requests that the run sent, and those whose items the run has paid for again or is about to.
const orphansOfRun = `
  ${selectAttempts} JOIN items i ON i.id = attempts.item_id
  WHERE ${isOrphan}
    AND (attempts.run_id = @run OR (i.run_id = @run AND i.state = 'planned') OR EXISTS (
      SELECT 1 FROM attempts again WHERE again.item_id = attempts.item_id AND again.number > attempts.number AND again.run_id = @run))
    AND NOT ${isUndecided("attempts", "i")}
  -- The sign keeps SQLite from reading all attempts in their order.
  ORDER BY +attempts.id`;
