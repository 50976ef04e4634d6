import type { Verdict } from "../../core/charges/readings.js";
import type { ItemEvent } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import {
  type Attempt,
  type AttemptOutcome,
  type Intent,
  type LoggedAttempt,
  TaskTaken,
} from "../../core/ports/attempt.js";
import type { AfterVerdict, NewItem } from "../../core/ports/store.js";
import type { InTransaction, Script } from "../script.js";
import { isLost, isUndecided, newestNumber } from "./lost-requests.js";
import { applyTransition, type Before, beforeColumns, type RootedDatabase, transit } from "./transition.js";

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

/** Attempts, and the tasks that they led to. */
export function attemptMethods(connection: RootedDatabase) {
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

    /** Records the verdict on an unanswered paid request: its item continues, or is held. */
    giveVerdict: async (
      itemId: number,
      verdict: Verdict,
      note: string,
      { nextAt = 0, isGivenUp = false }: AfterVerdict = {},
    ): Promise<void> =>
      atomic(function* () {
        if (isGivenUp)
          yield* applyTransition(connection, itemId, "given_up", { note, failure_kind: "provider" });
        else yield* applyTransition(connection, itemId, verdict, { next_at: nextAt, note });
        yield* sql("UPDATE attempts SET verdict = ? WHERE id = ?").run(verdict, (yield* newest(itemId))?.id);
        if (verdict === "not_charged") yield* leaveIfVanished(connection, itemId);
      }),

    /**
     * How many of an item's paid requests in a row ended without an answer, the newest included. A task or a rejection ends
     * such a row.
     */
    lostInARow: (itemId: number): Promise<number> =>
      read(function* () {
        return (yield* sql(
          `SELECT count(*) FROM attempts WHERE item_id = @itemId AND outcome = 'unanswered' AND number > coalesce(
             (SELECT max(number) FROM attempts WHERE item_id = @itemId AND outcome IN ('accepted', 'rejected')), 0)`,
        ).value({ itemId })) as number;
      }),

    /** The cost of lost attempts whose items were submitted again. */
    resubmitted: (runId: number): Promise<Credits> =>
      read(function* () {
        const { sum } = (yield* sql(
          `SELECT coalesce(sum(a.price), 0) AS sum FROM attempts a JOIN items i ON i.id = a.item_id
         WHERE ? IN (a.run_id, i.run_id) AND ${isLost("a")}
           AND (i.state NOT IN ('held', 'dropped') OR a.number < ${newestNumber("i")})`,
        ).get(runId)) as { sum: number };
        return sum as Credits;
      }),

    /** The newest accepted request to a service: its spend-log entry, and when it was sent (UTC ms); null if there is none. */
    newestPaid: (origin: string): Promise<{ entry: number; sentAt: number } | null> =>
      read(function* () {
        const newest = yield* sql(
          `SELECT a.spend_log_id AS entry, a.sent_at AS "sentAt" FROM attempts a JOIN runs r ON r.id = a.run_id
         WHERE a.outcome = 'accepted' AND a.spend_log_id IS NOT NULL AND r.origin = ? ORDER BY a.id DESC LIMIT 1`,
        ).get(origin);
        return (newest as { entry: number; sentAt: number } | undefined) ?? null;
      }),

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

    /** The balance in the newest answer to a paid request of the run since this time (UTC ms); null if there was none. */
    lastBalance: (runId: number, since: number): Promise<Credits | null> =>
      read(function* () {
        const row = (yield* sql(newestBalance).get(runId, since)) as { remaining: Credits } | undefined;
        return row?.remaining ?? null;
      }),

    /** What the tasks of a run have cost, each with its item's cells and model, page by page. */
    async *charges(runId: number): AsyncIterable<readonly ChargedItem[]> {
      for (let after = 0; ; ) {
        const values = { runId, after };
        const page = await read(function* () {
          return (yield* sql(chargesOfRun).all(values)) as (Omit<ChargedItem, "cells"> & {
            id: number;
            cells: string;
          })[];
        });
        if (page.length === 0) return;
        yield page.map(({ id: _, cells, ...rest }) => ({ ...rest, cells: JSON.parse(cells) }));
        after = page.at(-1)?.id ?? after;
      }
    },

    /**
     * Attempts that were or may have been charged, and whose task is unknown. For a run: those whose items continued, and
     * that the run sent, or that an earlier run sent and this run pays again.
     */
    orphans: (of: { item: number } | { run: number }): Promise<Attempt[]> =>
      read(function* () {
        const rows = "item" in of ? yield* sql(orphansOfItem).all(of.item) : yield* sql(orphansOfRun).all(of);
        return rows as Attempt[];
      }),
  };
}

/** A task that is paid for, and what it was of. */
export interface ChargedItem {
  model: string;
  cells: NewItem["cells"];
  charged: Credits;
}

const chargesOfRun = `
  SELECT attempts.id, items.model, items.cells, attempts.charged FROM attempts JOIN items ON items.id = attempts.item_id
  WHERE attempts.run_id = @runId AND attempts.closed = 1 AND attempts.charged > 0 AND attempts.id > @after
  ORDER BY attempts.id LIMIT 1000`;

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
