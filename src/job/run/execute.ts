import { dirname, join } from "node:path";
import { openInspector } from "../../archive/check/inspector.js";
import { copyIndex, copyKey, savingCopies } from "../../archive/copies.js";
import { bucketDisk } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { undiciDownloads } from "../../archive/download/download.js";
import { identityOf, type JobIndex } from "../../archive/index-file.js";
import { removeLeftovers } from "../../archive/leftovers.js";
import { openArchive } from "../../archive/save.js";
import { BucketError } from "../../bucket/bucket.js";
import type { AlarmClock, Clock } from "../../clock.js";
import { residual } from "../../core/charges/readings.js";
import { reconcile } from "../../core/charges/verdict.js";
import { type ExitName, weightiest } from "../../core/exit.js";
import { type ItemState, openStates } from "../../core/item.js";
import { balanceTold, type Credits, minus, noCredits } from "../../core/money.js";
import { deadlineOf } from "../../core/next/options.js";
import type { Disk } from "../../core/ports/disk.js";
import type { Log } from "../../core/ports/send.js";
import type { Run, Store } from "../../core/ports/store.js";
import { freeSlots, lanesOf, slotsLeft as leftOf, nextSendAt, owedRequests } from "../../core/quota/quota.js";
import { type Stop, stopTable } from "../../core/stop.js";
import { localInput } from "../../manifest/local-inputs.js";
import { ownVersion } from "../../package-file.js";
import { openPublisher, PublishError, type PublishSettings, publishPlace } from "../../publish/publisher.js";
import { arrange, Replacements } from "../../run/arrange.js";
import { type AccountReading, isLogged, readAccount } from "../../run/gate/balance.js";
import { keeping } from "../../run/gate/caps.js";
import { type Progress, runLoop } from "../../run/loop.js";
import type { RunSettings } from "../../run/ports.js";
import { openSession, type Session } from "../../run/ports.js";
import type { PublishPorts } from "../../run/publishing.js";
import { openReceipts } from "../../run/receipts/receipts.js";
import { WakeSignal } from "../../run/waits.js";
import { count } from "../../text/amounts.js";
import { pollOrders } from "../orders/attend.js";
import { lineOf } from "../workspace/index-line.js";
import type { WorkspaceSession } from "../workspace/open.js";
import { endRefused } from "../workspace/open.js";
import { asUsage, bucketNamed } from "../workspace/outputs-place.js";
import { stateName } from "../workspace/state.js";
import { openCopies } from "./copies.js";
import { openSaves } from "./saves.js";

/** Polls in flight at once, where there are no more lanes. The quota limits them far more than this does. */
const pollsAtOnce = 8;

/** With the account as it was when the run began. */
export interface ExecuteOptions extends AccountReading {
  opened: WorkspaceSession;
  run: Run;
  clock: AlarmClock;
  environment: Readonly<Record<string, string | undefined>>;
  publish: PublishSettings;
  log: Log;
  interrupt: AbortSignal;
  unreachableMs: number;
  fetchOnly?: boolean;
  /** False: other processes do the downloads. */
  work?: boolean;
  /** The balance does not cover all planned items. */
  inOrder: boolean;
  /** Items that were left out because the credits do not cover them. */
  leftOut: number;
  onBegin?(run: Run): Promise<void> | void;
  onProgress(progress: Progress): void;
}

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
   * Null where it could not be read without a paid request in flight.
   */
  creditCheck: { counted: Credits; known: Credits } | null;
}

/** Executes a run until nothing is left to do or something stops it, and closes it. */
export async function execute(options: ExecuteOptions): Promise<Execution> {
  const { opened, run, clock, log } = options;
  const { store, account } = opened;
  const beganAt = clock.now();
  const lanes = run.options.lanes ?? lanesOf(options.me.subscription?.plan ?? "Starter");
  const downloads = undiciDownloads({ baseUrl: opened.connection.baseUrl });
  const inspector = openInspector({ clock });
  const { download } = downloads;
  const folder = jobFolder(run);
  const copies = await openCopies(run.options, options.environment);
  // Then the bucket alone keeps the outputs.
  const only = run.options.archiveOnly === true ? (copies?.bucket ?? null) : null;
  const disk = only === null ? nodeDisk : bucketDisk(nodeDisk, only, folder, true);
  const archive = openArchive({
    disk,
    download,
    clock,
    inspect: inspector.inspect,
    version: ownVersion(),
    sidecars: run.options.sidecars ?? false,
  });
  if (opened.connection.sandbox) await store.readdress(run.id, new URL(opened.connection.baseUrl).origin);
  await removeLeftovers(disk, folder).catch((error: unknown) => {
    throw asUsage(error);
  });
  const replacements = new Replacements();
  const bell = new WakeSignal();
  const saves = await openSaves({ ...options, disk, bucket: only?.name ?? null }, archive, () => bell.ring());
  const session = openSession(
    {
      store,
      accounts: account.accounts,
      accountId: account.accountId(),
      fingerprint: account.fingerprint,
      workspace: stateName(opened.workspace),
      service: account.service,
      receipts: openReceipts(nodeDisk, opened.workspace, () => clock.now()),
      save: copies === null || only !== null ? saves.save : savingCopies(saves.save, copies.bucket),
      ...(saves.offered === undefined ? {} : { offered: saves.offered }),
      refusal: archive.refusal,
      spendLog: account.spendLog,
      lanes: account.lanes(lanes),
      publish: publishPorts(options),
      exists: async (path) => (await nodeDisk.size(path)) !== null,
      clock,
      log,
      replacements,
      bell,
    },
    {
      run,
      lanes,
      savesLanes: run.options.lanes === undefined,
      polls: Math.max(pollsAtOnce, lanes),
      downloads: run.options.downloads,
      maxCredits: run.options.maxCredits,
      modelCaps: new Map(Object.entries(run.options.modelCaps ?? {})),
      keep: keepOf(options),
      daily: run.options.dailyCredits ?? null,
      maxFailures: run.options.maxFailures,
      retries: run.options.retries,
      inOrder: options.inOrder,
      profile: run.options.poll ?? null,
      onInsufficient: run.options.onInsufficient === "wait" ? "wait" : "stop",
      onDailyLimit: run.options.onDailyLimit,
      deadline: deadlineOf(run.options, clock.now()),
      overdueWaitMs: run.options.overdueWaitMs,
      unreachableMs: options.unreachableMs,
      settling: settlingOf(run.options, lanes),
    },
  );
  if (options.fetchOnly) session.gate.stop("collect", "only paid items were downloaded");
  const begin = async () => {
    replacements.learn(
      await store.toArrange(run.jobName, "vanished"),
      await store.files(run.jobName, "vanished"),
    );
    if (only !== null) await completeIndex(await archive.indexOf(folder), disk, store, run);
    await arrange({ store, disk, log }, run, () => archive.indexOf(folder));
    await opened.lock.carries(run.id);
    await options.onBegin?.(run);
    return pollOrders({ store, clock, session, account });
  };
  const { attend, close: dismiss } = await begin().catch(async (error: unknown) => {
    // A process that still takes downloads would not end.
    await saves.close();
    throw error;
  });
  try {
    const { interrupt, onProgress } = options;
    await runLoop(session, { interrupt, onProgress, attend }).catch(endRefused);
  } finally {
    await dismiss();
    if (only !== null)
      await copyIndex(nodeDisk, only, folder).catch((error: Error) =>
        log.warn({}, `the index is not copied: ${error.message}. The next run copies it.`),
      );
    copies?.close();
    await saves.close();
    await archive.close();
    await inspector.close();
    await downloads.close();
  }
  return close(options, beganAt, session.gate);
}

/**
 * Adds the lines that this host's index lacks of outputs in a bucket, or has of an older name: another host may have run
 * before. Where a move was cut short, the index is right and the history is not.
 */
async function completeIndex(index: JobIndex, disk: Disk, store: Store, run: Run): Promise<void> {
  for await (const page of store.archived(run.jobId)) {
    for (const output of page) {
      if (output.bucket == null) continue;
      const line = lineOf(output);
      const known = index.find(identityOf(line));
      const isRight =
        known?.file === line.file || (known && (await disk.size(join(jobFolder(run), known.file))) !== null);
      if (!isRight) await index.add(line);
    }
  }
}

/** How long (s) the service can read an output that is handed on from a bucket. */
const linkSeconds = 86_400;

/** The flags of this execution come before the options of the run, and those before the settings files. */
function publishPorts(options: ExecuteOptions): PublishPorts | null {
  const { run, opened, environment, clock, publish, interrupt } = options;
  if (run.options.sandbox) return null;
  const folder = dirname(run.manifest);
  const { publish: to, publishMs: expiresMs } = run.options;
  const settings = publishPlace(publish, { to, expiresMs });
  const surroundings = { environment, cwd: opened.workspace.root, clock, interrupt };
  return {
    publisher: settings && (() => openPublisher(settings, surroundings)),
    localInput: (value) => localInput(folder, value),
    archived: (file) => localInput(jobFolder(run), file),
    async linkTo(name, file) {
      try {
        const bucket = bucketNamed(name, environment, interrupt);
        return await bucket.link(copyKey(jobFolder(run), file), linkSeconds);
      } catch (error) {
        throw error instanceof BucketError ? new PublishError(error.message) : error;
      }
    },
    interrupt,
  };
}

/** What must remain of the balance before this execution. */
function keepOf({ run, me, mark }: ExecuteOptions): RunSettings["keep"] {
  const { keepCredits } = run.options;
  if (keepCredits === undefined) return null;
  // If the service does not report a balance, spend nothing.
  return keeping(keepCredits, balanceTold(me.credits.balance) ?? noCredits, mark);
}

async function close(
  { opened, run, clock, me, leftOut }: ExecuteOptions,
  beganAt: number,
  { stops, breaker, prices, caps, requests, settling, refusedByDisk: refused }: Session["gate"],
): Promise<Execution> {
  const { store } = opened;
  const cancelled = (await store.run(run.id))?.state === "cancelled";
  // Items that went back to planned after the cancellation are not submitted again by this run.
  const unsubmitted = cancelled ? await store.cancelRun(run.id, new Set()) : 0;
  const counts = await store.counts(run.id);
  const read = await accountNow(opened, stops, counts, clock);
  const creditCheck = read !== null && isLogged(read) ? await checkCredits(opened, run.options) : null;
  const waiting = (await store.groups(run.id)).filter(({ planned }) => planned > 0);
  const isDearer = waiting.some((item) => prices.isBelow(item)) || caps.models.length > 0;
  const awaiting = (await store.awaitingApproval(run.id)).length;
  const undecided = counts.blocked === 0 ? 0 : counts.blocked - (await store.blockedByRejection(run.id));
  const exit = weightiest([
    exitOf({ ...counts, blocked: undecided }, stops, isDearer),
    ...(leftOut > 0 ? (["credits"] as const) : []),
    ...(awaiting > 0 ? (["held"] as const) : []),
  ]);
  const open = [...openStates, "overdue", "unknown"] as const;
  // A resume may release what a stop kept from its parents' addresses, what could not be published or had a canary that
  // failed, and what waits for an approval.
  const isCutShort =
    counts.blocked > 0 && (stops.length > 0 || awaiting > 0 || (await store.mayUnblock(run.id)));
  const unfinished = isCutShort || open.some((state) => counts[state] > 0);
  const left = stops.some(({ kind }) => kind === "paused") ? "paused" : "interrupted";
  const reasons = [
    ...stops.map((stop) => stop.message),
    ...breaker.messages,
    ...prices.messages(waiting),
    ...caps.messages,
    ...(refused !== null && counts.planned + counts.ready > 0 ? [`files cannot be saved: ${refused}`] : []),
    ...unsubmittedText(unsubmitted, run.jobName),
    ...(leftOut === 0
      ? []
      : [`${count(leftOut, "item was", "items were")} left out because the credits do not cover them`]),
  ];
  const balance = read ? balanceTold(read.me.credits.balance) : null;
  const lastBalance =
    balance ?? (await store.lastBalance(run.id, beganAt)) ?? balanceTold(me.credits.balance);
  const resumeAt = (await afterTheDay(opened, stops, clock)) ?? (await afterReading(opened, settling, clock));
  await store.setRun(run.id, {
    state: cancelled ? "cancelled" : unfinished ? left : "finished",
    exit,
    ending: { stops: stops.map(({ kind }) => kind), reasons, resumeAt, leftOut },
    endedAt: clock.now(),
    requests: requests + (read === null ? 0 : 1),
  });
  const ended = await store.run(run.id);
  if (!ended) throw new Error(`run ${run.id} is gone`);
  return { run: ended, exit, stops, reasons, counts, balance, lastBalance, resumeAt, creditCheck };
}

/** Says which items of a cancelled run are not submitted again. */
function unsubmittedText(items: number, jobName: string): string[] {
  if (items === 0) return [];
  return [
    `${count(items, "item")} not submitted again; the next run of ${jobName} submits what its manifest lists`,
  ];
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
  { nextReadingAt }: Session["gate"]["settling"],
  clock: Clock,
): Promise<number | null> {
  if (nextReadingAt === null) return null;
  const quota = await account.accounts.quota(account.accountId());
  return Math.max(nextReadingAt, nextSendAt(quota, clock.now()));
}

/** Why the run ends: its stops, and the final states of its items. */
function exitOf(counts: Record<ItemState, number>, stops: readonly Stop[], dearer: boolean): ExitName {
  const reasons: ExitName[] = stops.map((stop) => stopTable[stop.kind].exit);
  if (counts.held > 0) reasons.push("held");
  if (dearer && counts.planned > 0) reasons.push("cap");
  // Without a stop, planned items are left only by a parked model.
  if (counts.failed > 0 || (counts.planned > 0 && stops.length === 0)) reasons.push("failed");
  if (counts.overdue > 0 || counts.unknown > 0) reasons.push("unfinished");
  // Where no item that others wait for is in trouble itself, only a person can help them.
  if (counts.blocked > 0 && reasons.length === 0) reasons.push("held");
  return weightiest(reasons);
}

/** Compares the key's counter with the spend log since they last matched, and stores what that teaches. */
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
  return { counted, known };
}

function settlingOf(options: Run["options"], lanes: number): RunSettings["settling"] {
  const { settle, settleMs, unsettledMax = Math.max(5, 2 * lanes), errorIsFree, orphanCredits } = options;
  return { settleMs, errorIsFree, unsettledMax, wait: settle === "wait", orphanCredits };
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
  if (freeSlots(quota, clock.now()) < 1 || leftOf(quota.day) - owedRequests(counts) < 1) return null;
  return readAccount({ ...account, lanes: account.lanes(1) }).catch(() => null);
}
