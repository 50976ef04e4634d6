import { createHash } from "node:crypto";
import type { ItemEvent } from "../../core/item.js";
import { type Credits, credits, noCredits } from "../../core/money.js";
import type { RestoredAttempt, RestoredFile, RestoredItem } from "../../store/workspace/restore.js";
import { isCreatedBy } from "../orders/resolve.js";
import type { BookVerdicts } from "../workspace/book-verdicts.js";
import type { ArchivedLine } from "./archive-history.js";
import type { FoundItem } from "./rebuild-items.js";

/**
 * The state in which an item is written back: its task is known → processing; its files are all there → archived;
 * refused → planned; rejected → failed; else unknown, because it may have been charged. Its earlier attempts are kept
 * as they ended: one without an answer may have been charged as well.
 */
export interface RestoreOptions {
  /** UTC ms. */
  now: number;
  verdicts: Pick<BookVerdicts, "on">;
  /** How many outputs a task of this item has. */
  outputs: number;
  /** The row ids of the requests that tasks belong to. Tasks of this item are added. */
  owners: Map<string, string>;
}

export async function restoredItem(found: FoundItem, options: RestoreOptions): Promise<RestoredItem> {
  const { item } = found;
  const attempts = attemptsOf(found, options);
  const lines = archivedLines(found, attempts, options);
  const task = lines[0]?.task;
  if (task) collect(lines, attempts, { price: item.price, now: options.now });
  await giveUp(attempts.slice(0, -1), options.verdicts);
  const last = attempts.at(-1);
  const events: ItemEvent[] = last?.outcome ? ["intended", last.outcome] : [];
  if (lines.length > 0) events.push(...(task ? (["completed", "saved"] as const) : (["supplied"] as const)));
  const { failureKind = null } = found.attempts.get(attempts.length)?.answer?.conclusion.outcome ?? {};
  return {
    item,
    attempts,
    files: lines.map((line) => fileOf(line, options.now)),
    events,
    note: lines.length === 0 ? (last?.message ?? null) : task ? null : "made elsewhere",
    failureKind: lines.length === 0 ? failureKind : null,
  };
}

/** One for each number. An attempt that is in no receipt counts as one without an answer. */
function attemptsOf(
  { item: { rowId }, attempts }: FoundItem,
  { now, owners }: RestoreOptions,
): RestoredAttempt[] {
  const count = Math.max(0, ...attempts.keys());
  return Array.from({ length: count }, (_, index) => {
    const { intent = null, answer = null } = attempts.get(index + 1) ?? {};
    const intendedAt = timeOf(intent?.at ?? answer?.at) ?? now;
    const attempt = {
      ...unanswered(intendedAt),
      sentAt: timeOf(intent?.sentAt) ?? intendedAt,
      bookEntry: intent?.bookEntry ?? null,
      bodySha256:
        intent === null ? "" : createHash("sha256").update(JSON.stringify(intent.request)).digest("hex"),
    };
    if (answer === null) return attempt;
    const { event, outcome } = answer.conclusion;
    const { taskId = null, status = null, message = null } = outcome;
    const owner = taskId === null ? undefined : owners.get(taskId);
    const answered = { ...attempt, answeredAt: timeOf(answer.at), status };
    if (owner !== undefined) {
      const taken = `the answer names task ${taskId}, which is that of an earlier request (${owner})`;
      return { ...answered, message: taken };
    }
    if (taskId !== null) owners.set(taskId, rowId);
    const { externalTaskId = null, charged = null } = outcome;
    return { ...answered, outcome: event, message, taskId, externalTaskId, charged };
  });
}

function unanswered(at: number): RestoredAttempt {
  return {
    intendedAt: at,
    sentAt: at,
    answeredAt: at,
    bodySha256: "",
    bookEntry: null,
    outcome: "unanswered",
    verdict: null,
    status: null,
    message: "the receipts know no answer",
    taskId: null,
    externalTaskId: null,
    charged: null,
    createdAt: null,
    completedAt: null,
    closed: false,
  };
}

function timeOf(text: string | null | undefined): number | null {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? null : time;
}

/** The lines of the files that make the item archived; none where a file is missing or they are of an older attempt. */
function archivedLines(
  { outputs }: FoundItem,
  attempts: readonly RestoredAttempt[],
  options: RestoreOptions,
): ArchivedLine[] {
  const last = attempts.at(-1);
  const task = outputs.find((line) => line.task === last?.taskId)?.task ?? outputs.at(-1)?.task;
  const lines = outputs.filter((line) => line.task === task).toSorted((a, b) => a.output - b.output);
  const isWhole = lines.length >= options.outputs && lines.every(({ output }, index) => output === index + 1);
  if (task === undefined || !isWhole) return [];
  if (task === last?.taskId) return lines;
  // A file that was made elsewhere belongs to an item for which nothing is under way.
  if (task === "")
    return ["refused", "not_sent", "rejected", undefined].includes(last?.outcome ?? undefined)
      ? lines.slice(0, 1)
      : [];
  return options.owners.has(task) ? [] : lines;
}

/**
 * The task of the files has ended. Where no receipt names it, a person adopted it for the last request, which had no
 * answer; or its own request is not on record.
 */
function collect(
  lines: readonly ArchivedLine[],
  attempts: RestoredAttempt[],
  { price, now }: { price: Credits; now: number },
): void {
  const { task, created, completed, saved, credits: charged } = lines[0] as ArchivedLine;
  const last = attempts.at(-1);
  const isOf = last?.taskId === task;
  const isAdopted = last?.outcome === "unanswered" && isCreatedBy(last, created ?? "");
  if (!isOf && !isAdopted) attempts.push(unanswered(timeOf(completed ?? saved) ?? now));
  const attempt = attempts.at(-1) as RestoredAttempt;
  Object.assign(attempt, {
    outcome: "accepted",
    taskId: task,
    createdAt: created ?? "",
    completedAt: completed,
    closed: true,
  } satisfies Partial<RestoredAttempt>);
  attempt.charged = charged === null ? (attempt.charged ?? price) : credits(charged);
}

/**
 * Another request followed these. A task that was given up had failed, for 0 credits. Without its verdict an unanswered
 * request would count neither against what may be paid again nor as lost.
 */
async function giveUp(
  attempts: readonly RestoredAttempt[],
  verdicts: Pick<BookVerdicts, "on">,
): Promise<void> {
  for (const attempt of attempts) {
    if (attempt.outcome === "unanswered") attempt.verdict = await verdicts.on(attempt.bookEntry);
    if (attempt.outcome === "accepted") Object.assign(attempt, { closed: true, charged: noCredits });
  }
}

function fileOf(
  { task, output, file, bytes, sha256, mime, check, ...times }: ArchivedLine,
  now: number,
): RestoredFile {
  // Long expired, as every URL on record is.
  const url = task === "" ? "" : `https://expired.invalid/${task}/${output}`;
  const savedAt = timeOf(times.saved) ?? timeOf(times.completed) ?? now;
  return { number: output, url, file, bytes, sha256, mime, check, savedAt };
}
