import type { ItemEvent } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import { type Attempt, type AttemptOutcome, TaskTaken } from "../../core/ports/attempt.js";
import type { Addresses, ArchivedFile, Output, Store } from "../../core/ports/store.js";
import type { AsScript, InTransaction, Script } from "../script.js";
import { releaseChildren } from "./chains.js";
import { absolutePath } from "./own-paths.js";
import { applyTransition, type Before, beforeColumns, type RootedDatabase, transit } from "./transition.js";

/** Attempts, the tasks they led to, and the outputs of those tasks. */
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
  | "complete"
  | "attempt"
  | "orphans"
  | "lastBalance"
  | "outputs"
  | "pruned"
  | "expire"
  | "refreshOutputs"
  | "readdress"
  | "saved"
  | "lost"
  | "files"
  | "moved"
  | "filesOf"
>;

type AttemptChanges = { [Name in "adopt" | "expire" | "lost"]: AsScript<Store[Name]> };

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

    *expire(itemId, note) {
      yield* sql("UPDATE items SET expired = 1, next_at = 0, note = ? WHERE id = ? AND state = 'ready'").run(
        note,
        itemId,
      );
    },

    *lost(itemId, number) {
      const state = yield* sql("SELECT state FROM items WHERE id = ?").value(itemId);
      // In any other state the item has no valid file, or more outputs are expected.
      if (state === "archived") yield* applyTransition(connection, itemId, "file_lost");
      yield* sql("UPDATE outputs SET file = NULL, saved_at = NULL WHERE item_id = ? AND number = ?").run(
        itemId,
        number,
      );
      yield* sql("UPDATE items SET next_at = 0, polls = 0 WHERE id = ?").run(itemId);
    },
  };
}

export function attemptMethods(connection: RootedDatabase): AttemptMethods {
  const { atomic, read, ask, sql, clock, root } = connection;
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
         WHERE ? IN (a.run_id, i.run_id) AND a.outcome = 'unanswered' AND a.verdict IN ('charged', 'undecided')
           AND (i.state NOT IN ('held', 'dropped')
             OR a.number < (SELECT max(number) FROM attempts WHERE item_id = i.id))`,
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

    complete: async (itemId, facts) =>
      atomic(
        function* () {
          const { hasChildren } = yield* applyTransition(connection, itemId, "completed", {
            ...addressed(connection, facts),
            polls: 0,
            note: null,
          });
          yield* sql(
            `UPDATE attempts SET charged = coalesce(?, charged, price),
             created_at = ?, completed_at = ?, closed = 1
           WHERE item_id = ? AND task_id IS NOT NULL AND closed = 0`,
          ).run(facts.charged, facts.createdAt, facts.completedAt, itemId);
          // Outputs of an earlier task of the item. Its files stay in the archive, under their own lines of the index.
          yield* sql("DELETE FROM outputs WHERE item_id = ?").run(itemId);
          yield* keepUrls(connection, itemId, facts);
          if (hasChildren) yield* releaseChildren(connection, itemId);
        },
        { part: `item ${itemId}` },
      ),

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

    outputs: (itemId) =>
      ask(function* () {
        return (yield* sql(
          "SELECT number, url, file, sha256, bucket FROM outputs WHERE item_id = ? ORDER BY number",
        ).all(itemId)) as Output[];
      }),

    expire: async (itemId, note) => atomic(() => changes.expire(itemId, note)),

    refreshOutputs: async (itemId, fresh) =>
      atomic(function* () {
        const { hasChildren } = yield* applyTransition(
          connection,
          itemId,
          "url_expired",
          addressed(connection, fresh),
        );
        yield* keepUrls(connection, itemId, fresh);
        if (hasChildren) yield* releaseChildren(connection, itemId);
      }),

    async readdress(runId, origin) {
      const rows = await read(() => sql(neededOutputs).all({ runId }));
      const found = rows as { id: number; number: number; url: string }[];
      const elsewhere = found.filter(({ url }) => URL.canParse(url) && new URL(url).origin !== origin);
      if (elsewhere.length === 0) return;
      await atomic(function* () {
        for (const { id, number, url } of elsewhere) {
          const { pathname, search } = new URL(url);
          yield* sql("UPDATE outputs SET url = ? WHERE item_id = ? AND number = ?").run(
            `${origin}${pathname}${search}`,
            id,
            number,
          );
        }
      });
    },

    lost: async (itemId, number) => atomic(() => changes.lost(itemId, number)),

    pruned: async (itemIds, { check, note }) =>
      atomic(function* () {
        const ids = JSON.stringify(itemIds);
        yield* sql(
          `UPDATE outputs SET file = NULL, checked = @check
           WHERE item_id IN (SELECT CAST(value AS INTEGER) FROM json_each(@ids)) AND file IS NOT NULL`,
        ).run({ ids, check });
        yield* sql(
          "UPDATE items SET note = @note WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(@ids))",
        ).run({ ids, note });
      }),

    files: (jobName, only) =>
      read(function* () {
        const rows = yield* sql(only === "vanished" ? filesOfVanished : filesOfJob).all(jobName);
        return (rows as ArchivedFile[]).map((file) => ({
          ...file,
          outFolder: absolutePath(root, file.outFolder),
        }));
      }),

    moved: async (itemId, number, file) =>
      atomic(function* () {
        yield* sql("UPDATE outputs SET file = ? WHERE item_id = ? AND number = ?").run(file, itemId, number);
      }),

    filesOf: (runId) =>
      read(function* () {
        return (yield* sql(
          `SELECT count(DISTINCT CASE WHEN i.state = 'archived' THEN i.id END) AS made,
             count(*) AS files, coalesce(sum(o.bytes), 0) AS bytes
           FROM runs r JOIN items i ON i.run_id = r.id JOIN outputs o ON o.item_id = i.id
           WHERE r.id = ? AND o.file IS NOT NULL
             -- What this run has fetched again was paid for earlier. The clock may have been set back since the run began.
             AND (o.saved_at >= r.started_at OR i.id IN (SELECT item_id FROM attempts WHERE run_id = r.id))`,
        ).get(runId)) as { made: number; files: number; bytes: number };
      }),

    saved: async (itemId, number, file) =>
      atomic(
        function* () {
          yield* sql(
            `UPDATE outputs SET file = ?, out_folder = (${folderOfItem}), bucket = ?, bytes = ?, sha256 = ?, mime = ?,
               checked = ?, saved_at = ? WHERE item_id = ? AND number = ?`,
          ).run(
            file.file,
            itemId,
            file.bucket ?? null,
            file.bytes,
            file.sha256,
            file.mime,
            file.check,
            clock.now(),
            itemId,
            number,
          );
          const item = (yield* sql(itemSaved).get(itemId)) as Before & { missing: number };
          if (item.missing === 1) return;
          // Of what a person accepted, the reason stays.
          const note = (yield* sql(acceptedOutput).value(itemId)) as string | null | undefined;
          yield* transit(connection, item, "saved", { note: note ?? null });
          if (item.hasChildren === 1) yield* releaseChildren(connection, itemId);
        },
        { part: `item ${itemId}` },
      ),
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

const folderOfItem =
  "SELECT runs.out_folder FROM items JOIN runs ON runs.id = items.run_id WHERE items.id = ?";

const filesWhere = (condition: string) => `
  SELECT i.id AS itemId, i.key, o.number, o.file, o.out_folder AS outFolder, o.bucket, o.bytes, o.sha256, o.mime, o.checked AS "check",
    coalesce((SELECT task_id FROM attempts a WHERE a.item_id = i.id AND task_id IS NOT NULL AND o.url <> ''
      ORDER BY a.number DESC LIMIT 1), '') AS taskId
  FROM items i JOIN outputs o ON o.item_id = i.id
  WHERE i.job_id = (SELECT id FROM jobs WHERE name = ?) AND i.state = 'archived' AND o.file IS NOT NULL ${condition}
  ORDER BY i.position, i.id, o.number`;
const filesOfJob = filesWhere("");
const filesOfVanished = filesWhere("AND i.vanished = 1");

const newestBalance = `
  SELECT remaining FROM attempts WHERE run_id = ? AND answered_at >= ? AND remaining IS NOT NULL
  ORDER BY answered_at DESC, id DESC LIMIT 1`;

/** The outputs that a run has yet to fetch or to hand on. */
const neededOutputs = `
  SELECT outputs.item_id AS id, outputs.number, outputs.url FROM outputs WHERE outputs.item_id IN (
    SELECT id FROM items WHERE run_id = @runId AND state = 'ready'
    UNION SELECT parent.id FROM items JOIN parents ON parents.item_id = items.id
      JOIN items parent ON parent.job_id = items.job_id AND parent.key = parents.parent_key
      WHERE items.run_id = @runId AND (items.state = 'blocked' OR items.state = 'planned'))`;

/** What the item keeps of the URLs of its outputs. */
function addressed({ clock }: Pick<InTransaction, "clock">, { fetchBy }: Addresses) {
  return { next_at: 0, fetch_by: fetchBy, addressed_at: clock.now(), expired: 0 };
}

function* keepUrls({ sql }: InTransaction, itemId: number, { urls }: Addresses): Script<void> {
  for (const [index, url] of urls.entries()) {
    yield* sql(
      `INSERT INTO outputs (item_id, number, url) VALUES (?, ?, ?)
       ON CONFLICT (item_id, number) DO UPDATE SET url = excluded.url`,
    ).run(itemId, index + 1, url);
  }
}

const itemAnswered = `
  SELECT ${beforeColumns}, (SELECT owner.row_id FROM attempts AS taken JOIN items AS owner ON owner.id = taken.item_id
    WHERE taken.task_id = ? LIMIT 1) AS owner
  FROM attempts JOIN items ON items.id = attempts.item_id WHERE attempts.id = ?`;
const acceptedOutput =
  "SELECT checked FROM outputs WHERE item_id = ? AND checked LIKE 'accepted%' ORDER BY number LIMIT 1";
const itemSaved = `
  SELECT ${beforeColumns}, EXISTS (SELECT 1 FROM outputs WHERE item_id = items.id AND file IS NULL) AS missing
  FROM items WHERE id = ?`;

/** The columns of attempts, under the names of the fields of their records. */
const attemptColumns = `
  attempts.id, attempts.item_id AS itemId, attempts.run_id AS runId, attempts.number, attempts.intended_at AS intendedAt,
  attempts.sent_at AS sentAt, attempts.price, attempts.body_sha256 AS bodySha256, attempts.answered_at AS answeredAt,
  attempts.outcome, attempts.verdict, attempts.spend_log_id AS spendLogId, attempts.status, attempts.message,
  attempts.task_id AS taskId, attempts.external_task_id AS externalTaskId, attempts.charged,
  attempts.created_at AS createdAt, attempts.completed_at AS completedAt`;
export const selectAttempts = `SELECT ${attemptColumns} FROM attempts`;

const isOrphan = "attempts.outcome = 'unanswered' AND attempts.verdict IN ('charged', 'undecided')";
const orphansOfItem = `${selectAttempts} WHERE attempts.item_id = ? AND ${isOrphan} ORDER BY attempts.number`;
// The lost requests that the run sent, and those whose items the run has paid for again or is about to.
const orphansOfRun = `
  ${selectAttempts} JOIN items i ON i.id = attempts.item_id
  WHERE ${isOrphan}
    AND (attempts.run_id = @run OR (i.run_id = @run AND i.state = 'planned') OR EXISTS (
      SELECT 1 FROM attempts again WHERE again.item_id = attempts.item_id AND again.number > attempts.number AND again.run_id = @run))
    AND NOT (i.state = 'held' AND attempts.number = (SELECT max(number) FROM attempts WHERE item_id = i.id))
  -- The sign keeps SQLite from reading all attempts in their order.
  ORDER BY +attempts.id`;
