import { openSqlite } from "../../src/sqlite.js";

/** A task as the service has it on record. Times are UTC ms. */
export interface TaskOnRecord {
  id: string;
  prompt: string;
  /** What it costs while it has not failed, in credits. */
  credits: number;
  createdAt: number;
  /** When it ends or has ended. */
  endsAt: number;
  /** `null` while the service itself does not know. */
  outcome: "completed" | "failed" | null;
}

/** The service's own books: the file of its state. */
export function readLedger(file: string): TaskOnRecord[] {
  const db = openSqlite(file, { readonly: true });
  try {
    const rows = db
      .prepare("SELECT id, input, cost_micro, created_at, due_at, outcome FROM tasks ORDER BY created_at, id")
      .all() as TaskRow[];
    return rows.map((row) => ({
      id: row.id,
      prompt: (JSON.parse(row.input) as { prompt?: string }).prompt ?? "",
      credits: row.cost_micro / 1e6,
      createdAt: row.created_at,
      endsAt: row.due_at,
      outcome: row.outcome,
    }));
  } finally {
    db.close();
  }
}

interface TaskRow {
  id: string;
  input: string;
  cost_micro: number;
  created_at: number;
  due_at: number;
  outcome: TaskOnRecord["outcome"];
}
