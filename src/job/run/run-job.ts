import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Me } from "../../api/records.js";
import { jobFolder } from "../../archive/disk/names.js";
import type { AlarmClock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Credits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { PlannedItem } from "../../core/ports/draft.js";
import type { Log } from "../../core/ports/send.js";
import type { Output, Run } from "../../core/ports/store.js";
import type { Reason } from "../../core/reason.js";
import { contentHash } from "../../manifest/content-hash.js";
import { writeProblemsCsv } from "../../manifest/problems-csv.js";
import {
  exitOfRefusal,
  type Finding,
  onlyRowsAreWrong,
  type Plan,
  refusalsOf,
  wrongParts,
} from "../../plan/plan.js";
import type { PublishSettings } from "../../publish/publisher.js";
import type { AccountReading } from "../../run/gate/balance.js";
import type { Progress } from "../../run/loop.js";
import { openDraft } from "../../store/draft/draft.js";
import type { Changes, Store, TransactionPart } from "../../store/workspace/workspace.js";
import type { Environment } from "../../text/environment.js";
import { only } from "../../text/listing.js";
import type { ServiceConnection } from "../../workspace/account.js";
import { whoIsHere } from "../../workspace/lock.js";
import {
  openWorkspaceSession,
  prepareOutFolder,
  type WorkspaceSession,
  type WorkspaceSessionOptions,
} from "../../workspace/open.js";
import { checkCopies } from "../../workspace/outputs-place.js";
import { lostPicksText } from "../../workspace/takes/lost-picks.js";
import type { Workspace } from "../../workspace/workspace.js";
import { type AfterSettings, afterCommands, keptCommands } from "../after/settings.js";
import { submitAgain } from "../orders/apply.js";
import type { AgreeToForeignUse } from "../paid/foreign-use.js";
import type { Execution } from "./closing.js";
import { execute } from "./execute.js";
import { mustHaveWorkers } from "./outputs.js";
import {
  isWhole,
  manifestProblems,
  missingFiles,
  mustBeManifest,
  type PrepareOptions,
  prepare,
  type SheetOptions,
} from "./prepare.js";

export interface JobOptions {
  workspace: Workspace;
  /** Starts the sandbox or connects to the service. Local inputs are in the manifest's folder. */
  connect(manifest: string): Promise<{ connection: ServiceConnection; close(): Promise<void> }>;
  clock: AlarmClock;
  /** The machine's environment, for settings outside of bulkgen, such as the access to buckets. */
  environment: Environment;
  /** How local inputs are published, by the flags. */
  publish: PublishSettings;
  agreeTo?: PrepareOptions["agreeTo"];
  log: Log;
  interrupt: AbortSignal;
  unreachableMs: number;
  /** The most that this command may spend; null for any amount. */
  maxPrice?: Credits | null;
  /** Replaces the daily cap that the run was started with. */
  dailyCredits?: Credits;
  /** Asks whether to buy although the key was used elsewhere; without it nothing is bought then. */
  agreeToForeignUse?: AgreeToForeignUse;
  /** Submits nothing, only downloads what is paid for. */
  fetchOnly?: boolean;
  /** False: other processes do the downloads, for a workspace in a database. */
  work?: boolean;
  /** Called when the run and its items are recorded, before anything is submitted. */
  onBegin?(run: Run): Promise<void> | void;
  onProgress(progress: Progress): void;
  /** Called when a request waits for a slot in the quota: for what, until when (UTC ms). */
  onWait(reason: Reason): void;
  ifLocked: WorkspaceSessionOptions["ifLocked"];
  onLocked(message: string): void;
}

export interface RunJobOptions extends JobOptions, SheetOptions {
  /** Absolute path of the manifest. */
  manifest: string;
  /** Use the valid rows only; the others are written to a file. */
  skipInvalid: boolean;
  run: RunOptions;
  /** The commands after files and the set, by the flags and settings. */
  after: AfterSettings;
  /** The schedule that starts the run, and its due time (ISO 8601); null for a person. */
  scheduled: { schedule: string; due: string } | null;
  /** Asks for consent to the plan; false ends the run before anything is paid. */
  consent(plan: Plan): Promise<boolean>;
}

export interface Outcome {
  execution: Execution;
  /** Rows that --skip-invalid left out; null if every row was valid. */
  skipped: SkippedRows | null;
  /** Items that were archived before this run began. */
  before: number;
  /** When this execution began, after a person has agreed to its price, UTC ms. */
  startedAt: number;
  opened: Pick<WorkspaceSession, "store" | "workspace">;
}

interface SkippedRows {
  rows: number;
  /** Of these rows. */
  combinations: number;
  /** The file that lists what is wrong with them. */
  file: string;
}

/** One execution from file to archive. `use` gets the outcome while the workspace is still open. */
export async function runJob<Result>(
  options: RunJobOptions,
  use: (outcome: Outcome) => Promise<Result>,
): Promise<Result> {
  await mustBeManifest(options.manifest);
  prepareOutFolder(options.workspace.outFolder);
  // A run that is refused later would be left unfinished.
  mustHaveWorkers(options);
  await checkCopies(options.run, options.environment);
  const opened = await openWorkspaceSession({
    ...options,
    connect: () => options.connect(options.manifest),
    limits: options.run,
    onDailyLimit: options.run.onDailyLimit,
    signal: options.interrupt,
  });
  try {
    const enrolled = await enrolledRun(options, opened);
    const { run, skipped, startedAt } = enrolled;
    const before = (await opened.store.counts(run.id)).archived;
    const execution = await execute({ ...options, ...enrolled, opened }).catch((error: unknown) =>
      leaveUnstarted(error, opened.store, { ...run, state: "interrupted", endedAt: options.clock.now() }),
    );
    const lost = await lostPicksText(opened.store, run.jobId);
    if (lost !== null) options.log.warn({}, lost);
    return await use({ execution, skipped, before, startedAt, opened });
  } finally {
    await opened.close();
  }
}

/** A run that could not start must not count as in progress, or a worker that stands by would continue it. */
export async function leaveUnstarted(
  error: unknown,
  store: Store,
  { id, state, exit, endedAt }: Run,
): Promise<never> {
  if (error instanceof EarlyExit && error.exit === "usage") await store.setRun(id, { state, exit, endedAt });
  throw error;
}

interface Enrolled extends AccountReading {
  run: Run;
  startedAt: number;
  /** Items that the credits do not cover. */
  leftOut: number;
  skipped: SkippedRows | null;
  inOrder: boolean;
}

/** Plans, asks for consent, and records the items to make. Discards the plan. */
async function enrolledRun(options: RunJobOptions, opened: WorkspaceSession): Promise<Enrolled> {
  const draft = openDraft();
  try {
    const manifestSha256 = await contentHash(options.manifest);
    const { plan, ...reading } = await prepare({
      ...options,
      draft,
      runsCommands: true,
      origin: opened.connection.origin,
      sandbox: opened.connection.sandbox,
      account: opened.account,
      store: opened.store,
      signal: options.interrupt,
    });
    prepareOutFolder(jobFolder({ outFolder: options.workspace.outFolder, jobName: plan.job }));
    const skipped =
      plan.problems.length > 0 ? await skipInvalid(plan, options) : await noneSkipped(plan, options);
    if (plan.items.length === 0 && options.selection.onlyFailed) {
      throw new EarlyExit("done", `nothing to do: no selected row of ${plan.job} has failed`);
    }
    refuseBlocked(plan, options.run.onInsufficient);
    if (!(await options.consent(plan))) throw new EarlyExit("usage", "not confirmed; nothing was submitted");
    if (plan.due > 0 || plan.ordered.items > 0) await opened.account.spendLog.knowForeign(options.run);
    // Before the run: what it buys is known by it.
    await opened.account.accounts.leftOut(opened.account.accountId(), plan.leftOut);
    const startedAt = options.clock.now();
    const run = await enroll(options, opened, plan, reading.me, manifestSha256);
    const unpaid = plan.due - plan.fit.items;
    const leftOut = isFitted(plan, options) ? unpaid : 0;
    return { run, startedAt, ...reading, leftOut, skipped, inOrder: unpaid > 0 };
  } finally {
    draft.close();
  }
}

async function enroll(
  options: RunJobOptions,
  { store, connection }: WorkspaceSession,
  plan: Plan,
  me: Me,
  manifestSha256: string | null,
): Promise<Run> {
  const fitted = isFitted(plan, options);
  const reached = (item: PlannedItem) => !item.due || item.fits || !fitted;
  function* leftAlone() {
    yield* plan.unselected;
    for (const item of plan.items) if (!reached(item)) yield item.key;
  }
  function* rowIds() {
    for (const { rowId } of plan.items) yield rowId;
  }
  const job = await store.job(plan.job);
  // The plan's notes say what is run.
  const { afterFile: _file, afterSet: _set, afterMs: _ms, ...own } = options.run;
  const start = {
    manifest: options.manifest,
    origin: connection.origin,
    accountId: me.user.id,
    edition: plan.edition,
    outFolder: options.workspace.outFolder,
    options: {
      ...own,
      ...keptCommands(afterCommands(options.after, plan.after), isWhole(plan)),
      ...publishOf(options, plan),
      forecast: plan.requests.forecast,
      ...(Object.keys(plan.leftOut).length > 0 ? { leftOut: plan.leftOut } : {}),
      ...(manifestSha256 === null ? {} : { manifestSha256 }),
      beganBy: starterOf(options),
    },
  };
  const rows = plan.isPart ? rowIds() : undefined;
  const started = await store.beginRun(job.id, start, only(plan.items, reached), leftAlone(), rows);
  // The plan's two requests count for the run.
  const run = { ...started, requests: started.requests + 2 };
  await store.keepSheet(run.id, plan.sheet);
  await requeue(store, run, plan, options);
  return run;
}

/** Settings files are not recorded with the run: every execution reads them itself. */
function publishOf({ publish: { given } }: RunJobOptions, { publish }: Plan): Partial<RunOptions> {
  const to = given.to ?? publish?.to;
  const expiresMs = given.expiresMs ?? publish?.expiresMs ?? null;
  return {
    ...(to == null ? {} : { publish: to }),
    ...(expiresMs === null ? {} : { publishMs: expiresMs }),
  };
}

function starterOf({ scheduled }: RunJobOptions): NonNullable<RunOptions["beganBy"]> {
  return { ...whoIsHere(), ...scheduled };
}

/** Whether items beyond the balance are left out. Items beyond a cap are kept: a failed task frees its price. */
function isFitted({ blockers }: Plan, { run }: RunJobOptions): boolean {
  return run.onInsufficient === "fit" && blockers.some(({ kind }) => kind === "insufficient_credits");
}

/** With --skip-invalid, writes the invalid rows to a file and continues without them. */
async function skipInvalid(plan: Plan, { skipInvalid, workspace, log }: RunJobOptions): Promise<SkippedRows> {
  if (!skipInvalid || !onlyRowsAreWrong(plan.problems)) throw manifestProblems(plan.problems, plan.notes);
  const folder = jobFolder({ outFolder: workspace.outFolder, jobName: plan.job });
  const file = join(folder, problemsName);
  mkdirSync(folder, { recursive: true });
  await writeProblemsCsv(file, plan.problems);
  log.warn({ problems: plan.problems.length, file }, "invalid rows were left out");
  return { ...wrongParts(plan.problems), file };
}

/** Every row is valid: what an earlier run listed as invalid is no longer so. */
async function noneSkipped(plan: Plan, { workspace }: RunJobOptions): Promise<null> {
  const folder = jobFolder({ outFolder: workspace.outFolder, jobName: plan.job });
  if (plan.selection === null) await rm(join(folder, problemsName), { force: true });
  return null;
}

const problemsName = "problems.csv";

/** Throws EarlyExit when the plan forbids the run. */
function refuseBlocked(plan: Plan, onInsufficient: RunOptions["onInsufficient"]): void {
  const [refusal] = refusalsOf(plan, onInsufficient);
  if (refusal === undefined) return;
  const text = `${refusal.message} Nothing was submitted`;
  throw new EarlyExit(exitOfRefusal(refusal), `${text}${otherWay(plan, refusal)}`);
}

/** The end of the message: how to submit the items that the balance covers. */
function otherWay(plan: Plan, refusal: Finding): string {
  if (refusal.kind !== "insufficient_credits") return ".";
  if (refusal.coverage.items > 0) return "; --on-insufficient fit submits what the balance covers.";
  for (const { due, price } of plan.items)
    if (due && price <= refusal.balance)
      return ". --order cheapest --on-insufficient fit submits the cheaper items.";
  return ".";
}

/** Plans again what a person asked for and agreed to pay: failed items and lost files. */
export async function requeue(
  store: Store,
  run: Run,
  plan: Plan,
  { selection, onMissing }: Pick<SheetOptions, "selection" | "onMissing">,
): Promise<void> {
  const lost = new Set(onMissing === "report" ? [] : plan.missing.map(({ key }) => key));
  if (lost.size === 0 && !selection.onlyFailed) return;
  const due = new Map<string, Credits>();
  for (const item of plan.items) if (item.due) due.set(item.key, item.price);
  const numbers = lost.size === 0 ? new Map<string, number[]>() : await missingFiles(store, run.jobName, run);
  const parts: ((changes: Changes) => TransactionPart<void>)[] = [];
  for (const item of await store.items(run.id)) {
    const { id, key, state } = item;
    const price = due.get(key);
    if (state === "failed" && selection.onlyFailed && price !== undefined)
      parts.push((changes) => submitAgain(changes, item, price));
    if (state !== "archived" || !lost.has(key)) continue;
    if (onMissing === "pay") {
      const outputs = await store.outputs(id);
      parts.push((changes) => payAgain(changes, id, outputs, price));
    }
    // An adopted file has no task to download from.
    else if (await store.attempt(id)) {
      const missing = numbers.get(key) ?? [];
      parts.push(function* (changes) {
        for (const number of missing) yield* changes.lost(id, number);
      });
    }
  }
  await store.together(function* (changes) {
    for (const part of parts) yield* part(changes);
  });
}

/** One task makes all outputs, so all are made again; existing files stay where they are. */
function* payAgain(
  changes: Changes,
  itemId: number,
  outputs: readonly Output[],
  price: Credits | undefined,
): TransactionPart<void> {
  for (const { number } of outputs) yield* changes.lost(itemId, number);
  yield* changes.apply(itemId, "unfetchable", { note: "its file is gone" });
  yield* changes.apply(itemId, "resubmit", { nextAt: 0, ...(price === undefined ? {} : { price }) });
}
