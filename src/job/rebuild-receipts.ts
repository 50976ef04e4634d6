import { existsSync, readFileSync } from "node:fs";
import type { GenerateRequest } from "../api/records.js";
import type { Conclusion } from "../run/conclusion.js";
import { conclusionIn, type IntentLine, type ReceiptLine } from "../run/receipts.js";

/** What the receipts know of one paid request. */
export interface KnownAttempt {
  intent: IntentLine | null;
  answer: { at: string; conclusion: Conclusion } | null;
}

export interface ReceiptHistory {
  /** Attempts by item key and number, in the order in which they were made. */
  attempts: Map<string, Map<number, KnownAttempt>>;
  lines: number;
  /** Numbers of the lines that cannot be read, from 1. */
  unreadable: number[];
}

/** Reads the receipts, however damaged: each line stands for itself. */
export function readReceiptHistory(path: string): ReceiptHistory {
  const history: ReceiptHistory = { attempts: new Map(), lines: 0, unreadable: [] };
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  for (const [index, row] of text.split("\n").entries()) {
    if (row.trim() === "") continue;
    history.lines++;
    const line = lineIn(row);
    if (line === null) history.unreadable.push(index + 1);
    else if (line !== "other") note(history.attempts, line);
  }
  return history;
}

function note(attempts: ReceiptHistory["attempts"], line: IntentLine | ReceiptLine): void {
  const ofItem = attempts.get(line.key) ?? new Map<number, KnownAttempt>();
  attempts.set(line.key, ofItem);
  const known = ofItem.get(line.attempt) ?? { intent: null, answer: null };
  ofItem.set(line.attempt, known);
  if (isIntent(line)) known.intent ??= line;
  else known.answer ??= { at: line.at, conclusion: conclusionIn(line) };
}

/** Null for what is no line of ours; another kind of line is of no use here. */
function lineIn(row: string): IntentLine | ReceiptLine | "other" | null {
  let line: (Partial<Omit<IntentLine & ReceiptLine, "type">> & { type?: string }) | null;
  try {
    line = JSON.parse(row);
  } catch {
    return null;
  }
  if (line?.type === "rebuilt") return "other";
  if (typeof line?.key !== "string" || !Number.isInteger(line.attempt) || !isTime(line.at)) return null;
  if (line.type === "intent") return isRequest(line.request) ? (line as IntentLine) : null;
  if (line.type !== "answer") return "other";
  return answers.includes(line.event ?? "") ? (line as ReceiptLine) : null;
}

const answers: readonly string[] = ["accepted", "refused", "rejected", "not_sent", "unanswered"];

function isIntent(line: IntentLine | ReceiptLine): line is IntentLine {
  return line.type === "intent";
}

function isTime(at: unknown): boolean {
  return typeof at === "string" && !Number.isNaN(Date.parse(at));
}

function isRequest(request: unknown): request is GenerateRequest {
  return typeof (request as Partial<GenerateRequest> | null)?.model === "string";
}
