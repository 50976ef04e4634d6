import { copyKey } from "../../archive/copies.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { BucketError } from "../../bucket/bucket.js";
import { ServiceError } from "../../client/service.js";
import { WakeSignal } from "../../clock.js";
import { asBalance, type Credits, noCredits, plus } from "../../core/money.js";
import { deadlineOf } from "../../core/next/options.js";
import type { Run } from "../../core/ports/store.js";
import { lanesOf } from "../../core/quota/quota.js";
import { manifestFolder } from "../../manifest/folder.js";
import { localInput } from "../../manifest/local-inputs.js";
import {
  openPublisher,
  PublishError,
  type Publisher,
  type PublishSettings,
  publishPlace,
} from "../../publish/publisher.js";
import { arrange, Replacements } from "../../run/arrange.js";
import type { AccountReading } from "../../run/gate/balance.js";
import { keeping } from "../../run/gate/caps.js";
import type { Gate } from "../../run/gate/gate.js";
import { type Progress, runLoop } from "../../run/loop.js";
import { openSession, type RunPorts, type RunSettings, type Session } from "../../run/ports.js";
import type { PublishPorts } from "../../run/publishing.js";
import { openReceipts } from "../../run/receipts/receipts.js";
import { wayOut } from "../../store/open.js";
import type { RunNote, WorkspaceLock } from "../../workspace/lock.js";
import { endOnDatabaseError } from "../../workspace/open.js";
import { bucketNamed } from "../../workspace/outputs-place.js";
import { loggedWorkspace } from "../../workspace/state.js";
import { type After, type AfterOutcome, type Ending, openAfter } from "../after/commands.js";
import { type OrderPolling, pollOrders } from "../orders/attend.js";
import { closeRun, type Execution, endsWell } from "./closing.js";
import { type Outputs, type OutputsOptions, openOutputs } from "./outputs.js";
import { missingFiles } from "./prepare.js";
import { agreeToRun } from "./run-values.js";

/** Polls in flight at once, unless there are more lanes. The quota limits them far more than this does. */
const pollsAtOnce = 8;

/** With the account as it was when the run began. */
export interface ExecuteOptions extends AccountReading, OutputsOptions {
  publish: PublishSettings;
  interrupt: AbortSignal;
  unreachableMs: number;
  fetchOnly?: boolean;
  /** Why nothing is bought before a person agrees; null if everything is agreed to. */
  notAgreed?: string | null;
  /** The most that this execution may add to what the run has committed; null for any amount. */
  maxPrice?: Credits | null;
  /** The balance does not cover all planned items. */
  inOrder: boolean;
  /** Items that were left out because the credits do not cover them. */
  leftOut: number;
  onBegin?(run: Run): Promise<void> | void;
  onProgress(progress: Progress): void;
}

/** Executes a run until nothing is left to do or something stops it, and closes it. */
export async function execute(options: ExecuteOptions): Promise<Execution> {
  const { run, clock, interrupt, onProgress } = options;
  const beganAt = clock.now();
  const bell = new WakeSignal();
  const outputs = await openOutputs(options, () => bell.ring());
  const after = openAfter({ ...options, ...options.opened });
  let outcome: AfterOutcome | null = null;
  const lanes = run.options.lanes ?? lanesOf(options.me.subscription?.plan ?? "Starter");
  const session = openSession(
    portsOf(options, { outputs, after, bell, lanes }),
    settingsOf(options, lanes, await priceCapOf(options)),
  );
  if (options.fetchOnly) session.gate.stop("collect", "only paid items were downloaded");
  else if (options.notAgreed)
    session.gate.stop("agreement", `${options.notAgreed}. What is paid for was collected`);
  try {
    const orders = await begin(options, session, outputs);
    try {
      const tellOthers = noteTeller(options.opened.lock);
      const tell = (progress: Progress) => {
        tellOthers(progress);
        onProgress(progress);
      };
      await runLoop(session, { interrupt, onProgress: tell, attend: orders.attend });
      outcome = (await after?.finish(endingOf(options, session.gate))) ?? null;
      if (interrupt.aborted && !session.gate.stopped("interrupted"))
        session.gate.stop("interrupted", "interrupted while commands ran after files");
    } finally {
      await orders.close();
      await outputs.copyIndex();
    }
  } catch (error) {
    const ending = endOnDatabaseError(error, run);
    if (ending === null) throw error;
    await recordEnd(options, ending.message, session.gate.requests);
    throw ending;
  } finally {
    await after?.close();
    await outputs.close();
  }
  return closeRun(options, beganAt, session.gate, outcome);
}

/** What the commands after the files get to know of the run's end. */
function endingOf(options: ExecuteOptions, gate: Gate): Ending {
  const { opened, run } = options;
  return {
    isWell: () => endsWell(options, gate),
    missing: () => missingFiles(opened.store, run.jobName, run),
  };
}

/** Records why the run ends, as far as its database still takes it: without a record, `status` says that it crashed. */
async function recordEnd(
  { opened: { store }, run, clock }: ExecuteOptions,
  reason: string,
  requests: number,
): Promise<void> {
  try {
    await store.setRun(run.id, {
      state: "interrupted",
      exit: "unfinished",
      ending: { stops: [], reasons: [reason], resumeAt: null, leftOut: 0 },
      endedAt: clock.now(),
      requests,
    });
  } catch (error) {
    if (wayOut(error) === null) throw error;
  }
}

/**
 * Gives files the names that their rows ask for now, reports that the run has started, and accepts orders from then on.
 */
async function begin(
  { opened, run, clock, log, onBegin }: ExecuteOptions,
  session: Session,
  { disk, index, completeIndex }: Outputs,
): Promise<OrderPolling> {
  const { store, account, connection } = opened;
  if (connection.sandbox) await store.readdress(run.id, new URL(connection.baseUrl).origin);
  session.ports.replacements.learn(
    await store.toArrange(run.jobName, "vanished"),
    await store.files(run.jobName, "vanished"),
  );
  await completeIndex();
  await arrange({ store, disk, log }, run, index);
  await opened.lock.carries(run.id);
  agreeToRun(run, opened.workspace, clock.now());
  await onBegin?.(run);
  return pollOrders({ store, clock, session, account });
}

/** Keeps in the lock's note why the run waits, and how long it expects to take, for those who watch the run. */
function noteTeller(lock: WorkspaceLock): (progress: Progress) => void {
  let last: RunNote = { reason: null, forecastMs: null };
  return ({ reason, forecastMs }) => {
    const isSame =
      reason?.kind === last.reason?.kind &&
      reason?.text === last.reason?.text &&
      reason?.until === last.reason?.until;
    const change = Math.abs((forecastMs ?? 0) - (last.forecastMs ?? 0));
    if (isSame && change <= toldChange * (last.forecastMs ?? 0)) return;
    last = { reason, forecastMs };
    lock.says(last);
  };
}

/** A forecast that has changed by less than this share of it is not shown again. */
const toldChange = 0.01;

function portsOf(
  options: ExecuteOptions,
  { outputs, after, bell, lanes }: { outputs: Outputs; after: After | null; bell: WakeSignal; lanes: number },
): RunPorts {
  const { opened, clock, log } = options;
  const { store, account, workspace } = opened;
  const { save, offered, refusal } = outputs;
  return {
    store,
    accounts: account.accounts,
    accountId: account.accountId(),
    fingerprint: account.fingerprint,
    workspace: loggedWorkspace(workspace).name,
    service: account.service,
    receipts: openReceipts(nodeDisk, workspace, () => clock.now()),
    save,
    ...(offered === undefined ? {} : { offered }),
    refusal,
    ...(after === null ? {} : { archived: (...saved) => after.saved(...saved), handled: () => after.idle() }),
    spendLog: account.spendLog,
    lanes: account.lanes(lanes),
    publish: publishPorts(options),
    exists: async (path) => (await nodeDisk.size(path)) !== null,
    clock,
    log,
    replacements: new Replacements(),
    bell,
  };
}

/** The most that the run may have committed at the end of this execution. */
async function priceCapOf({ opened, run, maxPrice = null }: ExecuteOptions): Promise<Credits | null> {
  if (maxPrice === null) return null;
  const { charged, pending } = await opened.store.spending(run.id, {});
  return plus(plus(charged, pending), maxPrice);
}

function settingsOf(options: ExecuteOptions, lanes: number, priceCap: Credits | null): RunSettings {
  const { run, clock, inOrder, unreachableMs } = options;
  return {
    run,
    lanes,
    savesLanes: run.options.lanes === undefined,
    polls: Math.max(pollsAtOnce, lanes),
    priceCap,
    keep: keepOf(options),
    inOrder,
    deadline: deadlineOf(run.options, clock.now()),
    unreachableMs,
    settling: settlingOf(run.options, lanes),
  };
}

/** What must remain of the balance before this execution. */
function keepOf({ run, me, mark }: ExecuteOptions): RunSettings["keep"] {
  const { keepCredits } = run.options;
  if (keepCredits === undefined) return null;
  // If the service does not report a balance, spend nothing.
  return keeping(keepCredits, asBalance(me.credits.balance) ?? noCredits, mark);
}

function settlingOf(options: Run["options"], lanes: number): RunSettings["settling"] {
  const { settle, settleMs, unsettledMax = Math.max(5, 2 * lanes), errorIsFree, orphanCredits } = options;
  return { settleMs, errorIsFree, unsettledMax, wait: settle === "wait", orphanCredits };
}

/** How long (s) the service can read an output that is handed on from a bucket. */
const linkSeconds = 86_400;

/** The service itself, if it takes files as inputs. */
function atService({ account: { service }, connection }: ExecuteOptions["opened"]): (() => Publisher) | null {
  if (!service.announced().inputs) return null;
  return () => ({
    name: `inputs of ${connection.origin}`,
    async publish({ path, mime: type }) {
      try {
        return await service.putInput({ path, type });
      } catch (error) {
        throw error instanceof ServiceError ? new PublishError(error.message) : error;
      }
    },
  });
}

/** The flags of this execution come before the options of the run, and those before the settings files. */
function publishPorts(options: ExecuteOptions): PublishPorts | null {
  const { run, opened, environment, clock, publish, interrupt } = options;
  if (run.options.sandbox) return null;
  const folder = manifestFolder(run.manifest);
  const { publish: to, publishMs: expiresMs } = run.options;
  const settings = publishPlace(publish, { to, expiresMs });
  const surroundings = { environment, cwd: opened.workspace.root, clock, interrupt };
  return {
    publisher: settings ? () => openPublisher(settings, surroundings) : atService(opened),
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
