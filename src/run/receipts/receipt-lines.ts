import { z } from "zod";
import { mediaFields } from "../../api/inputs.js";
import { exactRequest, type GenerateRequest } from "../../api/records.js";
import { parseJson } from "../../api/values.js";
import type { ItemEvent } from "../../core/item.js";
import { asCredits, type Credits, credits, toNumber } from "../../core/money.js";
import type { Attempt, AttemptOutcome, Conclusion } from "../../core/ports/attempt.js";
import type { Item, Parent, Run } from "../../core/ports/store.js";
import { keptPath } from "../../store/workspace/own-paths.js";

/** What the receipts know about one paid request. */
export interface KnownAttempt {
  job: string;
  key: string;
  number: number;
  intent: IntentLine | null;
  answer: { at: string; conclusion: Conclusion } | null;
}

/**
 * Puts the lines of the receipts together, in their order. An answer belongs to the last intent of its attempt before
 * it, so an answer never belongs to an intent that follows it.
 */
export class KnownAttempts {
  private readonly newest = new Map<string, KnownAttempt>();
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
    const asked = this.find(job, key, number);
    if (asked?.answer === null) asked.answer = answer;
    else this.add({ job, key, number, intent: null, answer });
  }

  /** The newest request that was this attempt. */
  find(job: string, key: string, number: number): KnownAttempt | undefined {
    return this.newest.get(nameOf(job, key, number));
  }

  private add(known: KnownAttempt): void {
    this.newest.set(nameOf(known.job, known.key, known.number), known);
    this.inOrder.push(known);
  }
}

function nameOf(job: string, key: string, number: number): string {
  return `${key} ${number} ${job}`;
}

/**
 * The lines of the receipts. Two jobs with the same row share its key, and each counts its attempts from 1: an attempt
 * is known by job, key and number. All three outlive the database, which a run's or an item's own number does not.
 */

/** Written before a paid request leaves: enough to restore its item. */
export interface IntentLine {
  type: "intent";
  at: string;
  key: string;
  attempt: number;
  /** When it is sent, by the service's clock if known. */
  sentAt: string;
  /** Its entry in the account's spend log. */
  spendLogId: number | null;
  run: number;
  job: string;
  /** Relative to the workspace's folder if it lies there, else absolute. So is `out`. */
  manifest: string;
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
  /** Its files need a person's approval. */
  approve?: true;
  /** In credits. */
  price: number;
  /** As it was sent; inputs that are outputs of other items have the URLs of that moment. */
  request: GenerateRequest;
  /** Those inputs as written in the manifest, and the items whose outputs they are. */
  parents?: readonly (Parent & { written: string })[];
}

/** Written when the answer of a paid request is known. */
export interface AnswerLine extends Omit<AttemptOutcome, "charged" | "remaining"> {
  type: "answer";
  at: string;
  job: string;
  key: string;
  attempt: number;
  event: ItemEvent;
  charged?: number;
  remaining?: number;
}

/** What a person has decided about an item. */
export interface RecordedDecision {
  job: string;
  key: string;
  decision: "approved" | "rejected" | "picked" | "unpicked";
}

/** Written when a person has decided about an archived item: no request has it on record. */
export interface DecisionLine extends RecordedDecision {
  type: "decision";
  at: string;
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
    spendLogId: attempt.spendLogId,
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
    ...(item.approve ? { approve: true as const } : {}),
    price: toNumber(item.price),
    request: JSON.parse(body),
    ...(item.parents === undefined
      ? {}
      : { parents: item.parents.map((parent) => ({ ...parent, written: item.inputs[parent.field] ?? "" })) }),
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

const time = z.string().refine((text) => !Number.isNaN(Date.parse(text)));
/** Far more than any item has: each number up to it is restored as a request. */
const attemptNumber = z.int().min(1).max(9_999);
const amount = z.number().refine((value) => asCredits(value) !== null);

/** Strict, so that a damaged name of an optional field is noticed too. */
const lineShape = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("intent"),
    at: time,
    key: z.string(),
    attempt: attemptNumber,
    // An unreadable time counts as the time when the line was written.
    sentAt: z.unknown().optional(),
    spendLogId: z.int().nullable(),
    run: z.int(),
    job: z.string(),
    manifest: z.string(),
    out: z.string(),
    edition: z.string(),
    origin: z.string(),
    account: z.string(),
    row: z.string(),
    rowNumber: z.int(),
    occurrence: z.int(),
    variant: z.int(),
    name: z.string(),
    category: z.string(),
    approve: z.literal(true).optional(),
    price: amount,
    request: exactRequest,
    parents: z
      .array(
        z.strictObject({
          field: z.enum(mediaFields),
          key: z.string(),
          output: z.int(),
          written: z.string(),
        }),
      )
      .optional(),
  }),
  z.strictObject({
    type: z.literal("answer"),
    at: time,
    job: z.string(),
    key: z.string(),
    attempt: attemptNumber,
    event: z.enum(["accepted", "refused", "rejected", "not_sent", "unanswered"]),
    status: z.int().optional(),
    message: z.string().optional(),
    taskId: z.string().optional(),
    externalTaskId: z.string().optional(),
    charged: amount.optional(),
    remaining: amount.optional(),
    completeError: z.boolean().optional(),
    nextAt: z.number().optional(),
    failureKind: z.string().optional(),
  }),
  z.strictObject({
    type: z.literal("decision"),
    at: time,
    job: z.string(),
    key: z.string(),
    decision: z.enum(["approved", "rejected", "picked", "unpicked"]),
  }),
]);

/** Null for a line that is not as bulkgen wrote it: a crash cut it short, or the disk has damaged it. */
export function lineIn(row: string): IntentLine | AnswerLine | DecisionLine | null {
  const read = lineShape.safeParse(parseJson(row));
  return read.success ? (read.data as IntentLine | AnswerLine | DecisionLine) : null;
}
