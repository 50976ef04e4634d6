import type { GenerateRequest } from "../../api/records.js";
import type { ItemEvent } from "../../core/item.js";
import { type Credits, credits, toNumber } from "../../core/money.js";
import type { Attempt, AttemptOutcome } from "../../core/ports/attempt.js";
import type { Item, Run } from "../../core/ports/store.js";
import { keptPath } from "../../store/workspace/own-paths.js";
import type { Conclusion } from "./conclusion.js";

/** What the receipts know of one paid request. */
export interface KnownAttempt {
  /** Null for an answer that does not say it and stands after no intent of its attempt. */
  job: string | null;
  key: string;
  number: number;
  intent: IntentLine | null;
  answer: { at: string; conclusion: Conclusion } | null;
}

/**
 * Puts the lines of the receipts together, in their order: an answer belongs to the last intent before it of its
 * attempt, so one that stands before an intent never counts for it. Where the answer says its job, it counts for no
 * other one; where it does not, the last intent of whichever job is the right one, for a workspace has one process and
 * that one run, which settles what is left of others before it asks for anything.
 */
export class KnownAttempts {
  private readonly byAttempt = new Map<string, KnownAttempt[]>();
  private readonly inOrder: KnownAttempt[] = [];

  get all(): readonly KnownAttempt[] {
    return this.inOrder;
  }

  note(line: IntentLine | AnswerLine): void {
    if (line.type === "intent") {
      this.add({ job: line.job, key: line.key, number: line.attempt, intent: line, answer: null });
      return;
    }
    const answer = { at: line.at, conclusion: conclusionIn(line) };
    const { job, key, attempt: number } = line;
    const asked = this.of(key, number).findLast((known) => job === undefined || known.job === job);
    if (asked?.answer === null) asked.answer = answer;
    else this.add({ job: job ?? null, key, number, intent: null, answer });
  }

  /** The newest request that was this attempt. */
  find(job: string, key: string, number: number): KnownAttempt | undefined {
    return this.of(key, number).findLast((known) => known.job === job);
  }

  private add(known: KnownAttempt): void {
    const { key, number } = known;
    this.byAttempt.set(nameOf(key, number), [...this.of(key, number), known]);
    this.inOrder.push(known);
  }

  private of(key: string, number: number): readonly KnownAttempt[] {
    return this.byAttempt.get(nameOf(key, number)) ?? [];
  }
}

function nameOf(key: string, number: number): string {
  return `${key} ${number}`;
}

/**
 * The lines of the receipts. Two jobs with the same row share its key, and each counts its attempts from 1: an attempt
 * is known by job, key and number. All three outlive the database, which a run's or an item's own number does not.
 */

/** What is written before a paid request leaves: enough to make its item again. */
export interface IntentLine {
  type: "intent";
  at: string;
  key: string;
  attempt: number;
  /** When it is sent, by the service's clock as far as it is known; lines of earlier versions do not say it. */
  sentAt?: string;
  /** Its entry in the account's books. */
  bookEntry: number | null;
  run: number;
  job: string;
  /** Relative to the workspace's folder where it lies in it; absolute in lines of earlier versions. */
  manifest: string;
  /** Likewise. */
  out: string;
  edition: string;
  origin: string;
  account: string;
  row: string;
  rowNumber: number;
  occurrence: number;
  variant: number;
  name: string;
  category: string;
  /** In credits. */
  price: number;
  request: GenerateRequest;
}

/** What is written when the answer of a paid request is known. */
export interface AnswerLine extends Omit<AttemptOutcome, "charged" | "remaining"> {
  type: "answer";
  at: string;
  /** Lines of earlier versions lack it. */
  job?: string;
  key: string;
  attempt: number;
  event: ItemEvent;
  charged?: number;
  remaining?: number;
}

/** What is written when the workspace lies in another folder than before: lines above may name that one. */
export interface MovedLine {
  type: "moved";
  at: string;
  /** The folder that it was. */
  from: string;
}

/** `root` is the workspace's folder. */
export function intentLine(
  root: string,
  run: Run,
  item: Item,
  attempt: Attempt,
  body: string,
): Omit<IntentLine, "at"> {
  return {
    type: "intent",
    key: item.key,
    attempt: attempt.number,
    sentAt: new Date(attempt.sentAt).toISOString(),
    bookEntry: attempt.bookEntry,
    run: run.id,
    job: run.jobName,
    manifest: keptPath(root, run.manifest),
    out: keptPath(root, run.outFolder),
    edition: item.edition,
    origin: run.origin,
    account: run.accountId,
    row: item.rowId,
    rowNumber: item.rowNumber,
    occurrence: item.occurrence,
    variant: item.variant,
    name: item.name,
    category: item.category,
    price: toNumber(item.price),
    request: JSON.parse(body),
  };
}

export function answerLine(
  run: Run,
  item: Item,
  attempt: Attempt,
  { event, outcome }: Conclusion,
): Omit<AnswerLine, "at"> {
  const { charged, remaining, ...rest } = outcome;
  return {
    type: "answer",
    job: run.jobName,
    key: item.key,
    attempt: attempt.number,
    event,
    ...rest,
    ...inNumbers({ charged, remaining }),
  };
}

function inNumbers(amounts: Readonly<Record<"charged" | "remaining", Credits | undefined>>) {
  const known = Object.entries(amounts).filter((entry): entry is [string, Credits] => entry[1] !== undefined);
  return Object.fromEntries(known.map(([name, amount]) => [name, toNumber(amount)]));
}

export function conclusionIn({
  at: _at,
  type: _type,
  job: _job,
  key: _key,
  attempt: _attempt,
  event,
  ...rest
}: AnswerLine): Conclusion {
  const { charged, remaining, ...outcome } = rest;
  return {
    event,
    outcome: {
      ...outcome,
      ...(charged === undefined ? {} : { charged: credits(charged) }),
      ...(remaining === undefined ? {} : { remaining: credits(remaining) }),
    },
  };
}

/** Null for what is no line of ours, such as one that a crash cut short; another kind of line is of no use here. */
export function lineIn(row: string): IntentLine | AnswerLine | MovedLine | "other" | null {
  let line:
    | (Partial<Omit<IntentLine, "type"> & Omit<AnswerLine, "type"> & Omit<MovedLine, "type">> & {
        type?: string;
      })
    | null;
  try {
    line = JSON.parse(row);
  } catch {
    return null;
  }
  // Earlier versions noted so where a database was made of the receipts.
  if (line?.type === "rebuilt") return "other";
  if (line?.type === "moved") return typeof line.from === "string" ? (line as MovedLine) : null;
  if (typeof line?.key !== "string" || !Number.isInteger(line.attempt) || !isTime(line.at)) return null;
  if (line.type === "intent") return isRequest(line.request) ? (line as IntentLine) : null;
  if (line.type !== "answer") return "other";
  return answers.includes(line.event ?? "") ? (line as AnswerLine) : null;
}

const answers: readonly string[] = ["accepted", "refused", "rejected", "not_sent", "unanswered"];

function isTime(at: unknown): boolean {
  return typeof at === "string" && !Number.isNaN(Date.parse(at));
}

function isRequest(request: unknown): request is GenerateRequest {
  return typeof (request as Partial<GenerateRequest> | null)?.model === "string";
}
