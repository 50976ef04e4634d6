import type { Clock } from "../../clock.js";
import { clarity, residual } from "../../core/charges/readings.js";
import { reconcile } from "../../core/charges/verdict.js";
import { defined } from "../../core/defined.js";
import { type ExitName, weightiest } from "../../core/exit.js";
import { type ItemState, uncollectedStates } from "../../core/item.js";
import { asBalance, type Credits, minus } from "../../core/money.js";
import type { RunGroup } from "../../core/next/next.js";
import type { Forecast } from "../../core/pace/forecast.js";
import type { AfterLeft, Run } from "../../core/ports/store.js";
import { freeSlots, nextSendAt, owedRequests, slotsLeft } from "../../core/quota/quota.js";
import { type Stop, stopTable } from "../../core/stop.js";
import { type AccountReading, isLogged, readAccount } from "../../run/gate/balance.js";
import type { Gate } from "../../run/gate/gate.js";
import type { Store } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import type { BlockedReason } from "../../workspace/blocked.js";
import type { WaitingItem } from "../../workspace/evidence.js";
import type { WorkspaceSession } from "../../workspace/open.js";
import type { SpentIn } from "../../workspace/spent.js";
import type { ItemFailure } from "../../workspace/status.js";
import type { AfterOutcome } from "../after/commands.js";

export interface Execution {
  run: Run;
  exit: ExitName;
  stops: readonly Stop[];
  /** Why it ended before its items did, one line each. */
  reasons: readonly string[];
  counts: Record<ItemState, number>;
  /** The balance after the run, if it could be read. */
  balance: Credits | null;
  /** The balance as the service last reported it. */
  lastBalance: Credits | null;
  /**
   * When an unfinished run can continue (UTC ms): with new daily requests, or to settle lost answers; null for neither.
   */
  resumeAt: number | null;
  /**
   * How far the key's counter of used credits has moved since it last matched the spend log, and what the log explains.
   * Null if it could not be read without a paid request in flight.
   */
  creditCheck: { counted: Credits; known: Credits } | null;
  /** What became of the commands after files and the set; null if the run has none. */
  after: AfterOutcome | null;
}

/** The result of a run, as plain data. */
export interface RunSummary extends SpentIn {
  job: string;
  /** The run's number in its workspace. */
  run: number;
  sandbox: boolean;
  exit: ExitName;
  counts: Readonly<Record<ItemState, number>>;
  /** Invalid rows that were left out; null if there are none. */
  skipped: { rows: number; combinations: number; file: string } | null;
  /** Items that were archived before this execution began. */
  before: number;
  failures: readonly ItemFailure[];
  held: readonly WaitingItem[];
  /** Paid requests that may have been charged. */
  unknown: readonly WaitingItem[];
  overdue: readonly WaitingItem[];
  /** Items that wait for outputs of others. */
  blocked: readonly BlockedReason[];
  /** Row ids of archived items that wait for a person's approval. */
  awaiting: readonly string[];
  /** When the first overdue task is polled again (UTC ms); null if there is none. */
  nextPollAt: number | null;
  /** When an unfinished run can continue (UTC ms); null if unknown. */
  resumeAt: number | null;
  /** Why the run ended before all items were done: whole sentences. */
  stops: readonly string[];
  /** What became of the commands after files and the set; null if the run has none. */
  after: AfterOutcome | null;
  /** The balance; null if it could not be read. */
  left: Credits | null;
  /** The balance as the service last reported it during the run; null if it never did. */
  lastLeft: Credits | null;
  /** How far the key's counter of used credits moved, and what the items account for; null if it was not read. */
  creditCheck: { counted: Credits; known: Credits } | null;
  /** API requests of this run, over all its resumes. */
  requests: number;
  /** The time of this command, from the moment of consent to its price. */
  elapsedMs: number;
  /** From the beginning of the run to its end. */
  ranMs: number;
  /** The forecast from the start of the run; null if nothing was planned or the run was resumed. */
  forecast: Forecast | null;
  /** Items that this run archived, their files, and the bytes of those. */
  made: number;
  files: number;
  bytes: number;
  /** The job's folder. */
  folder: string;
  /** What to do now, as a command or a sentence; null if nothing is left to do. */
  nextStep: string | null;
  /** The command that shows the archived files; null if there are none. */
  look: string | null;
}

export interface ClosingOptions extends Pick<AccountReading, "me"> {
  opened: WorkspaceSession;
  run: Run;
  clock: Clock;
  /** Items that were left out because the credits do not cover them. */
  leftOut: number;
}

/** Returns how an execution that started at `beganAt` (UTC ms) ended, and records it. */
export async function closeRun(
  options: ClosingOptions,
  beganAt: number,
  gate: Gate,
  after: AfterOutcome | null = null,
): Promise<Execution> {
  const { opened, run, clock, me, leftOut } = options;
  const { store } = opened;
  const { stops } = gate;
  const left = await leftBy(store, run);
  const { counts } = left;
  const read = await accountNow(opened, stops, counts, clock);
  const creditCheck = read !== null && isLogged(read) ? await checkCredits(opened, run.options) : null;
  const afterLeft = leftAfter(after);
  const exit = weightiest([exitOf(left, gate, leftOut), ...(afterLeft === null ? [] : ["failed" as const])]);
  const reasons = reasonsOf(left, gate, { leftOut, jobName: run.jobName });
  const balance = read ? asBalance(read.me.credits.balance) : null;
  const lastBalance = balance ?? (await store.lastBalance(run.id, beganAt)) ?? asBalance(me.credits.balance);
  const resumeAt =
    (await afterTheDay(opened, stops, clock)) ?? (await afterReading(opened, gate.settling, clock));
  await store.setRun(run.id, {
    state: left.cancelled ? "cancelled" : await stateOf(store, run, left, stops),
    exit,
    ending: {
      stops: stops.map(({ kind }) => kind),
      reasons,
      resumeAt,
      leftOut,
      ...(afterLeft === null ? {} : { after: afterLeft }),
    },
    endedAt: clock.now(),
    requests: gate.requests + (read === null ? 0 : 1),
  });
  const ended = await store.run(run.id);
  if (!ended) throw new Error(`run ${run.id} is gone`);
  return { run: ended, exit, stops, reasons, counts, balance, lastBalance, resumeAt, creditCheck, after };
}

/** Whether everything that the run was to make is archived, and nobody is asked about it any more. */
export async function endsWell(
  { opened: { store }, run, leftOut }: Pick<ClosingOptions, "opened" | "run" | "leftOut">,
  gate: Gate,
): Promise<boolean> {
  return exitOf(await leftBy(store, run), gate, leftOut) === "done";
}

/** What is left of the commands; null if nothing is. */
function leftAfter(after: AfterOutcome | null): AfterLeft | null {
  if (after === null) return null;
  const { failed, reasons, left, set, missing } = after;
  if (failed + left === 0 && set === null && missing === undefined) return null;
  return { failed, reasons, left, set, ...defined({ missing }) };
}

/** What an execution leaves. */
interface Left {
  cancelled: boolean;
  /** Items that went back to planned after the cancellation: this run does not submit them again. */
  unsubmitted: number;
  counts: Record<ItemState, number>;
  /** The planned items, by price group. */
  waiting: RunGroup[];
  /** Archived items that wait for a person's approval. */
  awaiting: number;
  /** Blocked items that no rejection keeps from being made. */
  undecided: number;
}

async function leftBy(store: Store, { id }: Run): Promise<Left> {
  const cancelled = (await store.run(id))?.state === "cancelled";
  const unsubmitted = cancelled ? await store.cancelRun(id, new Set()) : 0;
  const counts = await store.counts(id);
  return {
    cancelled,
    unsubmitted,
    counts,
    waiting: (await store.groups(id)).filter(({ planned }) => planned > 0),
    awaiting: (await store.awaitingApproval(id)).length,
    undecided: counts.blocked === 0 ? 0 : counts.blocked - (await store.blockedByRejection(id)),
  };
}

/** Why the run ends: its stops, and the final states of its items. */
function exitOf(
  { counts, waiting, awaiting, undecided }: Left,
  { stops, prices, caps }: Gate,
  leftOut: number,
): ExitName {
  const reasons: ExitName[] = stops.map((stop) => stopTable[stop.kind].exit);
  const isDearer = waiting.some((item) => prices.isBelow(item)) || caps.models.length > 0;
  if (counts.held > 0) reasons.push("held");
  if (isDearer && counts.planned > 0) reasons.push("cap");
  // Without a stop, planned items are left only by a parked model.
  if (counts.failed > 0 || (counts.planned > 0 && stops.length === 0)) reasons.push("failed");
  if (counts.overdue > 0 || counts.unknown > 0) reasons.push("unfinished");
  // If no item that others wait for is in trouble itself, only a person can help them.
  if (undecided > 0 && reasons.length === 0) reasons.push("held");
  if (leftOut > 0) reasons.push("credits");
  if (awaiting > 0) reasons.push("held");
  return weightiest(reasons);
}

/** Why a run ended as it did, for people, one line for each reason. */
function reasonsOf(
  { counts, waiting, unsubmitted }: Left,
  { stops, breaker, prices, caps, refusedByDisk }: Gate,
  { leftOut, jobName }: { leftOut: number; jobName: string },
): string[] {
  const reasons = [
    ...stops.map((stop) => stop.message),
    ...breaker.messages,
    ...prices.messages(waiting),
    ...caps.messages,
  ];
  if (refusedByDisk !== null && counts.planned + counts.ready > 0)
    reasons.push(`files cannot be saved: ${refusedByDisk}`);
  if (unsubmitted > 0)
    reasons.push(
      `${count(unsubmitted, "item")} not submitted again; the next run of ${jobName} submits what its manifest lists`,
    );
  if (leftOut > 0)
    reasons.push(
      `${count(leftOut, "item was", "items were")} left out because the credits do not cover them`,
    );
  return reasons;
}

/** The state of a run that is not cancelled. */
async function stateOf(
  store: Store,
  { id }: Run,
  { counts, awaiting }: Left,
  stops: readonly Stop[],
): Promise<Run["state"]> {
  // A resume may release items that a stop kept from their parents' addresses, that could not be published, whose
  // canary failed, or that wait for an approval.
  const isCutShort = counts.blocked > 0 && (stops.length > 0 || awaiting > 0 || (await store.mayUnblock(id)));
  const open = counts.planned > 0 || uncollectedStates.some((state) => counts[state] > 0);
  if (!isCutShort && !open) return "finished";
  return stops.some(({ kind }) => kind === "paused") ? "paused" : "interrupted";
}

/** Daily requests come back one by one, and continuing needs several, so it waits a little after the first. */
const gatherMs = 30 * 60_000;

async function afterTheDay(
  { account }: WorkspaceSession,
  stops: readonly Stop[],
  clock: Clock,
): Promise<number | null> {
  const isStopped = (...kinds: Stop["kind"][]) => stops.some(({ kind }) => kinds.includes(kind));
  if (!isStopped("day", "reserve", "silence")) return null;
  const { day, blockedUntil } = await account.accounts.quota(account.accountId());
  if (isStopped("silence")) return Math.max(blockedUntil ?? 0, clock.now());
  return Math.max(day.nextReleaseAt ?? 0, clock.now()) + gatherMs;
}

/** When a resume can settle lost answers: when a reading is due and a slot is free for it. */
async function afterReading(
  { account }: WorkspaceSession,
  { nextReadingAt }: Gate["settling"],
  clock: Clock,
): Promise<number | null> {
  if (nextReadingAt === null) return null;
  const quota = await account.accounts.quota(account.accountId());
  return Math.max(nextReadingAt, nextSendAt(quota, clock.now()));
}

/** Compares the key's counter with the spend log since they last matched, and stores the result. */
async function checkCredits(
  { account: { spendLog } }: WorkspaceSession,
  options: Run["options"],
): Promise<Execution["creditCheck"]> {
  const seq = await spendLog.seq();
  const evidence = await spendLog.evidence(options);
  const last = evidence?.readings.at(-1);
  const [hypothesis] = evidence?.hypotheses ?? [];
  if (!evidence || !last || !hypothesis) return null;
  const counted = minus(last.used, evidence.baseline.used);
  const known = minus(counted, residual(evidence, last, hypothesis));
  const judgement = reconcile(evidence);
  // Verdicts are left to a continuing run, which can act on them and sees what other runs wrote since.
  if (judgement.unsettled === 0 && judgement.verdicts.length === 0) await spendLog.keep(judgement, seq);
  // Credits of a task that has just failed may have come back before the reading or after it.
  return counted === known || clarity(evidence, last) !== "never" ? { counted, known } : null;
}

/** One more GET me for the summary, if it needs no waiting. */
async function accountNow(
  { account }: WorkspaceSession,
  stops: readonly Stop[],
  counts: Record<ItemState, number>,
  clock: Clock,
): Promise<AccountReading | null> {
  if (
    stops.some((stop) => ["interrupted", "key", "subscription", "unreachable", "unread"].includes(stop.kind))
  )
    return null;
  const quota = await account.accounts.quota(account.accountId());
  if (freeSlots(quota, clock.now()) < 1 || slotsLeft(quota.day) - owedRequests(counts) < 1) return null;
  return readAccount({ ...account, lanes: account.lanes(1) }, { waits: false }).catch(() => null);
}
