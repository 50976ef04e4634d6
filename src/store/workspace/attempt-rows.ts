import type { ItemEvent } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";

export interface AttemptRow {
  id: number;
  item_id: number;
  run_id: number;
  number: number;
  intended_at: number;
  sent_at: number;
  price: number;
  body_sha256: string;
  answered_at: number | null;
  outcome: ItemEvent | null;
  status: number | null;
  message: string | null;
  task_id: string | null;
  external_task_id: string | null;
  charged: number | null;
  created_at: string | null;
  completed_at: string | null;
  closed: number;
  book_entry: number | null;
}

export function asAttempt(row: AttemptRow): Attempt {
  return {
    id: row.id,
    itemId: row.item_id,
    runId: row.run_id,
    number: row.number,
    intendedAt: row.intended_at,
    sentAt: row.sent_at,
    price: row.price as Credits,
    bodySha256: row.body_sha256,
    answeredAt: row.answered_at,
    outcome: row.outcome,
    status: row.status,
    message: row.message,
    taskId: row.task_id,
    externalTaskId: row.external_task_id,
    charged: row.charged as Credits | null,
    createdAt: row.created_at,
    completedAt: row.completed_at,
    bookEntry: row.book_entry,
  };
}
