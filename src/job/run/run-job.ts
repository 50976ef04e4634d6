import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Me } from "../../api/records.js";
import { jobFolder } from "../../archive/disk/names.js";
import type { AlarmClock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { type Credits, inCredits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { PlannedItem } from "../../core/ports/draft.js";
import type { Log } from "../../core/ports/send.js";
import type { Run, Store } from "../../core/ports/store.js";
import { writeProblemsCsv } from "../../manifest/problems-csv.js";
import { settlingWarning } from "../../plan/findings.js";
import { onlyRowsAreWrong, type Plan, paidForKinds } from "../../plan/plan.js";
import type { AccountReading } from "../../run/gate/balance.js";
import type { Progress } from "../../run/loop.js";
import { openDraft } from "../../store/draft/draft.js";
import { only } from "../../text/listing.js";
import type { ServiceConnection } from "../workspace/account.js";
import { missingFiles } from "../workspace/missing-files.js";
import {
  openWorkspaceSession,
  prepareOutFolder,
  type WorkspaceSession,
  type WorkspaceSessionOptions,
} from "../workspace/open.js";
import type { Workspace } from "../workspace/workspace.js";
import { type Execution, execute } from "./execute.js";
import { manifestProblems, prepare, type SheetOptions } from "./prepare.js";

export interface JobOptions {
  workspace: Workspace;
  /** Starts the sandbox, or names the service; local inputs lie in the manifest's folder. */
  connect(manifest: string): Promise<{ connection: ServiceConnection; close(): Promise<void> }>;
  clock: AlarmClock;
  log: Log;
  interrupt: AbortSignal;
  unreachableMs: number;
  /** What all runs of the account may spend in a day, in place of what the run was begun with. */
  dailyCredits?: Credits;
  /** Nothing is submitted, only what is paid for is fetched. */
  fetchOnly?: boolean;
  /** The run is on record and its items are in it; nothing was submitted yet. */
  onBegin?(run: Run): void;
  onProgress(progress: Progress): void;
  /** A request waits for its place in the quota: for what, until when (UTC ms). */
  onWait(what: "minute" | "day" | "service", until: number): void;
  ifLocked: WorkspaceSessionOptions["ifLocked"];
  onLocked(message: string): void;
}

export interface RunJobOptions extends JobOptions, SheetOptions {
  /** Absolute path of the manifest. */
  manifest: string;
  /** Go on with the good rows; the others are written to a file. */
  skipInvalid: boolean;
  run: RunOptions;
  /** Shown the plan; false ends the run before anything is paid. */
  consent(plan: Plan): Promise<boolean>;
}

export interface Outcome {
  execution: Execution;
  /** Items that the credits did not reach. */
  leftOut: number;
  /** Items that were archived before this run began. */
  before: number;
  /** When this execution began, UTC ms. */
  startedAt: number;
  hold: Pick<WorkspaceSession, "store" | "workspace">;
}

/** One execution from file to archive. `use` is handed the outcome while the workspace is still open. */
export async function runJob<Result>(
  options: RunJobOptions,
  use: (outcome: Outcome) => Promise<Result>,
): Promise<Result> {
  const startedAt = options.clock.now();
  prepareOutFolder(options.workspace.outFolder);
  const hold = await openWorkspaceSession({
    ...options,
    connect: () => options.connect(options.manifest),
    limits: options.run,
    onDailyLimit: options.run.onDailyLimit,
    signal: options.interrupt,
  });
  try {
    const enrolled = await enrolledRun(options, hold);
    const { run, leftOut } = enrolled;
    const before = (await hold.store.counts(run.id)).archived;
    const execution = await execute({ ...options, ...enrolled, hold });
    return await use({ execution, leftOut, before, startedAt, hold });
  } finally {
    await hold.close();
  }
}

interface Enrolled extends AccountReading {
  run: Run;
  /** Items that the credits do not reach. */
  leftOut: number;
  inOrder: boolean;
}

/** Plans, asks, and puts what is to be made on record; the plan itself is given up then. */
async function enrolledRun(options: RunJobOptions, hold: WorkspaceSession): Promise<Enrolled> {
  const draft = openDraft();
  try {
    const { plan, ...reading } = await prepare({
      ...options,
      draft,
      spending: options.run,
      ownLimits: options.run,
      origin: hold.connection.origin,
      sandbox: hold.connection.sandbox,
      account: hold.account,
      store: hold.store,
      signal: options.interrupt,
    });
    prepareOutFolder(jobFolder({ outFolder: options.workspace.outFolder, jobName: plan.job }));
    if (plan.problems.length > 0) await skipInvalid(plan, options);
    if (plan.items.length === 0 && options.selection.onlyFailed) {
      throw new EarlyExit("done", `nothing to do: no row of ${plan.job} that is selected has failed`);
    }
    refuseBlocked(plan, options.run.onInsufficient);
    plan.warnings.push(...settlingWarning(options.run.settleMs));
    if (!(await options.consent(plan))) throw new EarlyExit("usage", "not confirmed; nothing was submitted");
    const run = await enroll(options, hold, plan, reading.me);
    const unpaid = plan.due - plan.fit.items;
    const leftOut = isFitted(plan, options) ? unpaid : 0;
    return { run, ...reading, leftOut, inOrder: unpaid > 0 };
  } finally {
    draft.close();
  }
}

async function enroll(
  options: RunJobOptions,
  { store, connection }: WorkspaceSession,
  plan: Plan,
  me: Me,
): Promise<Run> {
  const job = await store.job(plan.job);
  const started = await store.startRun(job.id, {
    manifest: options.manifest,
    origin: connection.origin,
    accountId: me.user.id,
    edition: plan.edition,
    outFolder: options.workspace.outFolder,
    options: { ...options.run, forecast: plan.requests.forecast },
  });
  // The two requests of the plan belong to the run.
  const run = { ...started, requests: started.requests + 2 };
  const fitted = isFitted(plan, options);
  const reached = (item: PlannedItem) => !item.due || item.fits || !fitted;
  function* leftAlone() {
    yield* plan.unselected;
    for (const item of plan.items) if (!reached(item)) yield item.key;
  }
  await store.enroll(run.id, only(plan.items, reached), leftAlone());
  await store.keepSheet(run.id, plan.sheet);
  await again(store, run, plan, options);
  return run;
}

/** Whether items are left out for the balance. What a cap leaves out is not: a task that fails frees its price. */
function isFitted({ blockers }: Plan, { run }: RunJobOptions): boolean {
  return run.onInsufficient === "fit" && blockers.some(({ kind }) => kind === "insufficient_credits");
}

/** Writes the wrong rows to a file and goes on without them, where that was asked for and can be done. */
async function skipInvalid(plan: Plan, { skipInvalid, workspace, log }: RunJobOptions): Promise<void> {
  if (!skipInvalid || !onlyRowsAreWrong(plan.problems)) throw manifestProblems(plan.problems);
  const folder = jobFolder({ outFolder: workspace.outFolder, jobName: plan.job });
  const file = join(folder, "problems.csv");
  mkdirSync(folder, { recursive: true });
  await writeProblemsCsv(file, plan.problems);
  log.warn({ problems: plan.problems.length, file }, "wrong rows are left out");
}

/** Throws EarlyExit when the plan says that the run must not begin. */
function refuseBlocked(plan: Plan, onInsufficient: RunOptions["onInsufficient"]): void {
  for (const blocker of plan.blockers) {
    if (blocker.kind === "no_subscription" || blocker.kind === "past_due") {
      throw new EarlyExit("key", `${blocker.message} Nothing was submitted.`);
    }
    if (paidForKinds.includes(blocker.kind))
      throw new EarlyExit("usage", `${blocker.message} Nothing was submitted.`);
    if (blocker.kind === "insufficient_credits" && onInsufficient === "refuse") {
      throw new EarlyExit(
        "credits",
        `${blocker.message} Nothing was submitted; --on-insufficient fit runs that far.`,
      );
    }
    if (
      onInsufficient === "fit" &&
      blocker.kind === "insufficient_credits" &&
      blocker.reaches.items === 0 &&
      nothingElse(plan)
    ) {
      throw new EarlyExit(
        "credits",
        `the balance of ${inCredits(blocker.balance)} pays for no item. Nothing was submitted.`,
      );
    }
  }
}

/** No item of the plan is at the service or waits for its download. */
function nothingElse(plan: Plan): boolean {
  for (const { due, standing } of plan.items)
    if (!due && standing !== "archived" && standing !== "failed") return false;
  return true;
}

/** Puts back what a person asked for once more and has agreed to the price of: failed items, and lost files. */
export async function again(
  store: Store,
  run: Run,
  plan: Plan,
  { selection, onMissing }: Pick<SheetOptions, "selection" | "onMissing">,
): Promise<void> {
  const lost = new Set(onMissing === "report" ? [] : plan.missing.map(({ key }) => key));
  if (lost.size === 0 && !selection.onlyFailed) return;
  const due = new Map<string, Credits>();
  for (const item of plan.items) if (item.due) due.set(item.key, item.price);
  const numbers = lost.size === 0 ? new Map<string, number[]>() : await missingFiles(store, run.jobName);
  for (const { id, key, state } of await store.items(run.id)) {
    const price = due.get(key);
    if (state === "failed" && selection.onlyFailed && price !== undefined)
      await store.apply(id, "retry", { nextAt: 0, price });
    if (state !== "archived" || !lost.has(key)) continue;
    if (onMissing === "pay") await payAgain(store, id, price);
    // What was made elsewhere has no task to be fetched from.
    else if (await store.attempt(id))
      for (const number of numbers.get(key) ?? []) await store.lost(id, number);
  }
}

/** All outputs belong to one task, so all of them are made anew; files that are still there stay where they are. */
async function payAgain(store: Store, itemId: number, price: Credits | undefined): Promise<void> {
  for (const { number } of await store.outputs(itemId)) await store.lost(itemId, number);
  await store.apply(itemId, "unfetchable", { note: "its file is gone" });
  await store.apply(itemId, "resubmit", { nextAt: 0, ...(price === undefined ? {} : { price }) });
}
