import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { isPruned, noteOfPruned } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import type { Verdict } from "../../core/charges/readings.js";
import type { ItemEvent } from "../../core/item.js";
import { type Credits, credits, noCredits } from "../../core/money.js";
import { nothingToSubmit } from "../../core/next/options.js";
import type { Run, RunStart } from "../../core/ports/store.js";
import { isCreatedBy } from "../../job/orders/resolve.js";
import { type Accounts, openAccounts } from "../../store/accounts/accounts.js";
import type { RestoredAttempt, RestoredFile, RestoredItem } from "../../store/workspace/restore.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { Workspace } from "../../workspace/workspace.js";
import type { ArchivedLine, FoundItem } from "./rebuild-items.js";

/** The spend log's verdicts on paid requests without an answer. */
export interface LoggedVerdicts {
  /** `undecided` if the spend log has no verdict: a request that may have been charged counts as charged. */
  on(spendLogId: number | null): Promise<Verdict>;
  /** Whether the task of a request has ended well, as far as the spend log knows. */
  isMade(spendLogId: number | null): Promise<boolean>;
  close(): Promise<void>;
}

/** Opens the spend logs that exist; creates none. An unreadable log is treated as empty. */
export function openVerdicts(
  { accountsFile, stateFile }: Pick<Workspace, "accountsFile" | "stateFile">,
  clock: Clock,
): LoggedVerdicts {
  const accounts = readable(accountsFile, clock);
  const spendLog = accounts?.spendLog({ origin: "", fingerprint: "", workspace: stateFile });
  return {
    async on(spendLogId) {
      const entry = spendLogId === null ? null : await spendLog?.entry(spendLogId);
      return entry?.verdict ?? "undecided";
    },
    async isMade(spendLogId) {
      const entry = spendLogId === null ? null : await spendLog?.entry(spendLogId);
      return entry?.task === "completed";
    },
    close: async () => accounts?.close(),
  };
}

function readable(accountsFile: string, clock: Clock): Accounts | null {
  if (!existsSync(accountsFile)) return null;
  try {
    return openAccounts(accountsFile, clock);
  } catch {
    // Commands that need the spend log report its errors; a rebuild works without it.
    return null;
  }
}

/** What receipts and archive do not say about an item. */
interface Unsaid {
  origin: string;
  accountId: string;
  outFolder: string;
  manifestFolder: string;
  sandbox: boolean;
}

export interface RebuildTarget {
  store: Store;
  restore(runId: number, item: RestoredItem): void;
}

export interface RebuildContext {
  clock: Clock;
  unsaid: Unsaid;
  verdicts: Pick<LoggedVerdicts, "on" | "isMade">;
}

/** Writes the items in their final states: one run for each job, edition, output folder and account. */
export async function refill(
  target: RebuildTarget,
  items: readonly FoundItem[],
  context: RebuildContext,
): Promise<void> {
  const { unsaid } = context;
  const runs = new Map<string, FoundItem[]>();
  for (const found of items) {
    const { job, item } = found;
    const of = JSON.stringify([job, item.edition, placeOf(found, unsaid), accountOf(found, unsaid)]);
    const group = runs.get(of) ?? [];
    runs.set(of, group);
    group.push(found);
  }
  const expected = expectedOutputs(items);
  const owners = new Map<string, string>();
  const owing: number[] = [];
  for (const [number, group] of numbered([...runs.values()])) {
    const run = await refillRun(target, group, { ...context, expected, owners, number });
    if (run.owes) owing.push(run.id);
  }
  // Only after all runs exist: starting a run of an edition would continue an open one.
  for (const id of owing) await target.store.setRun(id, { state: "interrupted" });
}

/**
 * The groups in the order of their run numbers. Each group gets the number of its newest request, so that later runs
 * have higher numbers than all that people may have noted. Groups without a recorded request come last, and get the
 * next numbers.
 */
function numbered(groups: readonly FoundItem[][]): [number: number | undefined, group: FoundItem[]][] {
  const taken = new Set<number>();
  const known = groups.map((group): [number | undefined, FoundItem[]] => {
    const newest = newestNumber(group);
    if (newest < 1 || taken.has(newest)) return [undefined, group];
    taken.add(newest);
    return [newest, group];
  });
  return known.toSorted(([a = Number.MAX_SAFE_INTEGER], [b = Number.MAX_SAFE_INTEGER]) => a - b);
}

/** 0 if no request is on record. */
function newestNumber(group: readonly FoundItem[]): number {
  let newest = 0;
  for (const { attempts } of group)
    for (const { intent } of attempts.values()) newest = Math.max(newest, intent?.run ?? 0);
  return newest;
}

/** The output folder of an item's latest file; without a file, the folder in its intent. */
function placeOf({ attempts, outputs, intent }: FoundItem, { outFolder }: Unsaid): string {
  const newest = attempts.get(Math.max(...attempts.keys()))?.answer?.conclusion.outcome.taskId;
  const output = outputs.find(({ task }) => task === newest) ?? outputs.at(-1);
  return output?.outFolder ?? intent?.out ?? outFolder;
}

/** The account of an item. All tasks of a run belong to one user, who alone can collect them. */
function accountOf({ intent }: FoundItem, unsaid: Unsaid): Pick<RunStart, "origin" | "accountId"> {
  return { origin: intent?.origin ?? unsaid.origin, accountId: intent?.account ?? unsaid.accountId };
}

async function refillRun(
  { store, restore }: RebuildTarget,
  group: readonly FoundItem[],
  context: RebuildContext & {
    expected: ReadonlyMap<string, number>;
    owners: Map<string, string>;
    number: number | undefined;
  },
): Promise<Run> {
  const { clock, unsaid, expected, owners, verdicts, number } = context;
  const [first] = group;
  if (!first) throw new Error("a run of no items");
  const run = await store.startRun((await store.job(first.job)).id, startOf(first, group, unsaid), number);
  for (const found of group) {
    const outputs = expected.get(groupOf(found)) ?? 1;
    restore(run.id, await restoredItem(found, { now: clock.now(), verdicts, outputs, owners }));
  }
  // A refused item waits for the next run of its manifest: `resume` must not buy anything.
  await store.cancelRun(run.id, new Set());
  await store.setRun(run.id, { state: "finished", endedAt: clock.now() });
  return (await store.run(run.id)) ?? run;
}

/** The most outputs that a task of a model with its params has in the archive. */
function expectedOutputs(items: readonly FoundItem[]): Map<string, number> {
  const most = new Map<string, number>();
  for (const found of items) {
    const numbers = found.outputs.map(({ output }) => output);
    most.set(groupOf(found), Math.max(most.get(groupOf(found)) ?? 1, ...numbers));
  }
  return most;
}

function groupOf({ item: { model, params } }: FoundItem): string {
  return JSON.stringify([model, params]);
}

function startOf(found: FoundItem, group: readonly FoundItem[], unsaid: Unsaid): RunStart {
  const intent = group.find(({ intent }) => intent)?.intent;
  return {
    manifest: intent?.manifest ?? `${unsaid.manifestFolder}/${found.job}.csv`,
    ...accountOf(found, unsaid),
    edition: found.item.edition,
    outFolder: placeOf(found, unsaid),
    // The caps of the old runs are lost, so `resume` only collects.
    options: { ...nothingToSubmit, rebuilt: true, sandbox: unsaid.sandbox },
  };
}

interface RestoreOptions {
  /** UTC ms. */
  now: number;
  verdicts: Pick<LoggedVerdicts, "on" | "isMade">;
  /** How many outputs a task of this item has. */
  outputs: number;
  /** The row ids of the requests that tasks belong to. Tasks of this item are added. */
  owners: Map<string, string>;
}

/**
 * The state in which an item is written back: its task is known → processing; its files are all there → archived;
 * refused → planned; rejected → failed; else unknown, because it may have been charged. Its earlier attempts are kept
 * as they ended: one without an answer may have been charged as well.
 */
async function restoredItem(found: FoundItem, options: RestoreOptions): Promise<RestoredItem> {
  const { item } = found;
  const attempts = attemptsOf(found, options);
  const lines = archivedLines(found, attempts, options);
  const task = lines[0]?.task;
  if (task) collect(lines, attempts, { price: item.price, now: options.now });
  await closeEarlier(attempts.slice(0, -1), found.made, options.verdicts);
  const last = attempts.at(-1);
  const events: ItemEvent[] = last?.outcome ? ["intended", last.outcome] : [];
  if (lines.length > 0) events.push(...(task ? (["completed", "saved"] as const) : (["supplied"] as const)));
  const { failureKind = null } = found.attempts.get(attempts.length)?.answer?.conclusion.outcome ?? {};
  return {
    item,
    attempts,
    files: lines.map((line) => fileOf(line, options.now)),
    events,
    note:
      lines.length === 0 ? (last?.message ?? null) : (prunedNote(lines) ?? (task ? null : "made elsewhere")),
    failureKind: lines.length === 0 ? failureKind : null,
    ...found.decided,
  };
}

function prunedNote(lines: readonly ArchivedLine[]): string | null {
  const pruned = lines.find(({ check }) => isPruned(check));
  return pruned === undefined ? null : noteOfPruned(pruned.check);
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
      spendLogId: intent?.spendLogId ?? null,
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
    spendLogId: null,
    outcome: "unanswered",
    verdict: null,
    status: null,
    message: "the receipts have no answer",
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

/**
 * The lines of the files that make the item archived; none if a file is missing or the files belong to an older
 * attempt.
 */
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
  // A file that was made elsewhere belongs to an item without a task or a request.
  if (task === "")
    return ["refused", "not_sent", "rejected", undefined].includes(last?.outcome ?? undefined)
      ? lines.slice(0, 1)
      : [];
  return options.owners.has(task) ? [] : lines;
}

/**
 * The task of the files has ended. If no receipt names it, a person adopted it for the last request, which had no
 * answer, or its own request is not recorded.
 */
function collect(
  lines: readonly ArchivedLine[],
  attempts: RestoredAttempt[],
  { price, now }: { price: Credits; now: number },
): void {
  const { task, external_task, created, completed, saved, credits: charged } = lines[0] as ArchivedLine;
  const last = attempts.at(-1);
  const isOf = last?.taskId === task;
  const isAdopted = last?.outcome === "unanswered" && isCreatedBy(last, created ?? "");
  if (!isOf && !isAdopted) attempts.push(unanswered(timeOf(completed ?? saved) ?? now));
  const attempt = attempts.at(-1) as RestoredAttempt;
  Object.assign(attempt, {
    outcome: "accepted",
    taskId: task,
    externalTaskId: external_task ?? attempt.externalTaskId,
    createdAt: created ?? "",
    completedAt: completed,
    closed: true,
  } satisfies Partial<RestoredAttempt>);
  attempt.charged = charged === null ? (attempt.charged ?? price) : credits(charged);
}

/**
 * Closes attempts that another request followed. A request follows an accepted one only if its task failed, for 0 credits,
 * or if a person paid again for files that were gone. An unanswered request needs its verdict: without one it would count neither against what may be paid again nor as lost.
 */
async function closeEarlier(
  attempts: readonly RestoredAttempt[],
  made: FoundItem["made"],
  verdicts: Pick<LoggedVerdicts, "on" | "isMade">,
): Promise<void> {
  for (const attempt of attempts) {
    if (attempt.outcome === "unanswered") attempt.verdict = await verdicts.on(attempt.spendLogId);
    if (attempt.outcome !== "accepted") continue;
    attempt.closed = true;
    // The archive does not have what was made if its files were lost and paid for again.
    const isMade = made.has(attempt.taskId ?? "") || (await verdicts.isMade(attempt.spendLogId));
    if (!isMade) attempt.charged = noCredits;
  }
}

function fileOf(
  { task, output, file, bucket, bytes, sha256, mime, check, ...times }: ArchivedLine,
  now: number,
): RestoredFile {
  // Long expired, as every URL on record is.
  const url = task === "" ? "" : `https://expired.invalid/${task}/${output}`;
  const savedAt = timeOf(times.saved) ?? timeOf(times.completed) ?? now;
  return { number: output, url, file, bucket: bucket ?? null, bytes, sha256, mime, check, savedAt };
}
