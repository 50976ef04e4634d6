import type { Verdict } from "../../core/charges/readings.js";
import type { ItemEvent } from "../../core/item.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { NewItem, SavedFile } from "../../core/ports/store.js";
import type { InTransaction, Script } from "../script.js";
import { itemOfRun, put } from "./enroll.js";
import { applyTransition } from "./transition.js";

/** An attempt as it ended. Its number is its place among the attempts of its item, from 1. */
export interface RestoredAttempt extends Omit<Attempt, "id" | "itemId" | "runId" | "number" | "price"> {
  verdict: Verdict | null;
  /** The task has ended, so `charged` is final. */
  closed: boolean;
}

export interface RestoredFile extends SavedFile {
  number: number;
  /** Empty for a file that no task made. */
  url: string;
  /** UTC ms. */
  savedAt: number;
}

/** An item with all that is known about it. */
export interface RestoredItem {
  item: NewItem;
  attempts: readonly RestoredAttempt[];
  /** Either all files of its task, or none. */
  files: readonly RestoredFile[];
  /** The events that lead from `planned` to its state. */
  events: readonly ItemEvent[];
  note: string | null;
  failureKind: string | null;
  /** What a person has decided about it. */
  approval: "approved" | "rejected" | null;
  picked: boolean;
}

/**
 * Adds an item in its final state to a run. Only attempts and files have times of the past. Call it inside a transaction.
 * Throws SQLite's error.
 */
export function* restoreItem(connection: InTransaction, runId: number, restored: RestoredItem): Script<void> {
  const { sql } = connection;
  const { item, attempts, files, events, note, failureKind, approval, picked } = restored;

  yield* put(connection, runId, [item]);
  const { id } = (yield* sql(itemOfRun).get(runId, item.key)) as { id: number };
  for (const [index, attempt] of attempts.entries()) {
    yield* sql(
      `INSERT INTO attempts (item_id, run_id, number, price, spend_log_id, intended_at, sent_at, answered_at, body_sha256,
           outcome, verdict, status, message, task_id, external_task_id, charged, created_at, completed_at, closed)
         VALUES (@id, @runId, @number, @price, @spendLogId, @intendedAt, @sentAt, @answeredAt, @bodySha256,
           @outcome, @verdict, @status, @message, @taskId, @externalTaskId, @charged, @createdAt, @completedAt, @closed)`,
    ).run({ ...attempt, id, runId, number: index + 1, price: item.price, closed: attempt.closed ? 1 : 0 });
  }
  for (const file of files) {
    yield* sql(
      `INSERT INTO outputs (item_id, number, url, file, out_folder, bucket, bytes, sha256, mime, checked, saved_at)
         VALUES (@id, @number, @url, @file, (SELECT out_folder FROM runs WHERE id = @runId), @bucket, @bytes, @sha256, @mime, @check, @savedAt)`,
    ).run({ ...file, bucket: file.bucket ?? null, id, runId });
  }
  // An item with parents starts as blocked, and was released before anything else happened to it.
  if (events.length > 0 && item.parents !== undefined) yield* applyTransition(connection, id, "released");
  for (const event of events) yield* applyTransition(connection, id, event);
  const acceptedAt = events.includes("accepted") ? (attempts.at(-1)?.answeredAt ?? null) : null;
  yield* sql("UPDATE items SET accepted_at = ?, note = ?, failure_kind = ? WHERE id = ?").run(
    acceptedAt,
    note,
    failureKind,
    id,
  );
  // An item becomes archived with its files, and loses them as it did before.
  yield* sql("UPDATE outputs SET file = NULL WHERE item_id = ? AND checked LIKE 'pruned%'").run(id);
  if (approval !== null) yield* sql("UPDATE items SET approval = ? WHERE id = ?").run(approval, id);
  if (picked) yield* sql("INSERT INTO picks (item_id) VALUES (?)").run(id);
}
