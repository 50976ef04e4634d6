import { existsSync, readFileSync } from "node:fs";
import { type KnownAttempt, KnownAttempts } from "../run/known-attempts.js";
import { lineIn } from "../run/receipt-lines.js";

export interface ReceiptHistory {
  /** In the order in which they were made. */
  attempts: readonly KnownAttempt[];
  lines: number;
  /** Numbers of the lines that cannot be read, from 1. */
  unreadable: readonly number[];
}

/** Reads the receipts, however damaged: each line stands for itself. */
export function readReceiptHistory(path: string): ReceiptHistory {
  const attempts = new KnownAttempts();
  const unreadable: number[] = [];
  let lines = 0;
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  for (const [index, row] of text.split("\n").entries()) {
    if (row.trim() === "") continue;
    lines++;
    const line = lineIn(row);
    if (line === null) unreadable.push(index + 1);
    else if (line !== "other") attempts.note(line);
  }
  return { attempts: attempts.all, lines, unreadable };
}
