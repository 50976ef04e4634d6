import { existsSync, readFileSync } from "node:fs";
import {
  type IntentLine,
  type KnownAttempt,
  KnownAttempts,
  lineIn,
} from "../../run/receipts/receipt-lines.js";
import { toldPath } from "../../store/workspace/own-paths.js";
import type { Workspace } from "../workspace/workspace.js";

export interface ReceiptHistory {
  /** In the order in which they were made, with absolute paths. */
  attempts: readonly KnownAttempt[];
  lines: number;
  /** Numbers of the lines that cannot be read, from 1. */
  unreadable: readonly number[];
}

/** Reads the receipts. A damaged line is skipped and counted. */
export function readReceiptHistory({
  root,
  receiptsFile,
}: Pick<Workspace, "root" | "receiptsFile">): ReceiptHistory {
  const attempts = new KnownAttempts();
  const unreadable: number[] = [];
  let lines = 0;
  const text = existsSync(receiptsFile) ? readFileSync(receiptsFile, "utf8") : "";
  for (const [index, row] of text.split("\n").entries()) {
    if (row.trim() === "") continue;
    lines++;
    const line = lineIn(row);
    if (line === null) unreadable.push(index + 1);
    else attempts.note(line.type === "intent" ? withPaths(line, root) : line);
  }
  return { attempts: attempts.all, lines, unreadable };
}

function withPaths(intent: IntentLine, root: string): IntentLine {
  return { ...intent, manifest: toldPath(root, intent.manifest), out: toldPath(root, intent.out) };
}
