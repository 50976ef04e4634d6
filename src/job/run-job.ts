import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import type { Log } from "../core/log.js";
import { showCredits } from "../core/money.js";
import type { RunOptions } from "../core/run-options.js";
import type { NewItem, Run } from "../core/store.js";
import { writeProblemsCsv } from "../manifest/problems-csv.js";
import { onlyRowsAreWrong, type Plan } from "../plan/plan.js";
import { jobFolder } from "../run/folder.js";
import type { Progress } from "../run/loop.js";
import type { Connection } from "./account.js";
import { again } from "./again.js";
import { type Execution, execute } from "./execute.js";
import { type Hold, type HoldOptions, holdWorkspace, prepareOutFolder } from "./open.js";
import { manifestProblems, prepare, type SheetOptions } from "./prepare.js";
import type { Workspace } from "./workspace.js";

export interface JobOptions {
  workspace: Workspace;
  /** Starts the sandbox, or names the service; local inputs lie in the manifest's folder. */
  connect(manifest: string): Promise<{ connection: Connection; close(): Promise<void> }>;
  clock: Clock;
  log: Log;
  interrupt: AbortSignal;
  unreachableMs: number;
  /** Nothing is submitted, only what is paid for is fetched. */
  fetchOnly?: boolean;
  /** The run is on record and its items are in it; nothing was submitted yet. */
  onBegin?(run: Run): void;
  onProgress(progress: Progress): void;
  /** A request waits for its place in the quota: for what, until when (UTC ms). */
  onWait(what: "minute" | "day" | "service", until: number): void;
  ifLocked: HoldOptions["ifLocked"];
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
  hold: Pick<Hold, "store" | "workspace">;
}

/** One execution from file to archive. `use` is handed the outcome while the workspace is still open. */
export async function runJob<Result>(
  options: RunJobOptions,
  use: (outcome: Outcome) => Promise<Result>,
): Promise<Result> {
  const startedAt = options.clock.now();
  prepareOutFolder(options.workspace.outFolder);
  const hold = await holdWorkspace({
    ...options,
    connect: () => options.connect(options.manifest),
    limits: options.run,
    onDailyLimit: options.run.onDailyLimit,
    signal: options.interrupt,
  });
  try {
    const { plan, me } = await prepare({
      ...options,
      maxCredits: options.run.maxCredits,
      ownLimits: options.run,
      origin: hold.connection.origin,
      sandbox: hold.connection.sandbox,
      account: hold.account,
      store: hold.store,
    });
    prepareOutFolder(jobFolder({ outFolder: options.workspace.outFolder, jobName: plan.job }));
    if (plan.problems.length > 0) await skipInvalid(plan, options);
    if (plan.items.length === 0 && options.selection.onlyFailed) {
      throw new EarlyExit("done", `nothing to do: no row of ${plan.job} that is selected has failed`);
    }
    const items = submittable(plan, options.run.onInsufficient);
    if (!(await options.consent(plan))) throw new EarlyExit("usage", "not confirmed; nothing was submitted");
    const job = await hold.store.job(plan.job);
    const started = await hold.store.startRun(job.id, {
      manifest: options.manifest,
      origin: hold.connection.origin,
      accountId: me.user.id,
      edition: plan.edition,
      outFolder: options.workspace.outFolder,
      options: { ...options.run, forecast: plan.requests.forecast },
    });
    // The two requests of the plan belong to the run.
    const run = { ...started, requests: started.requests + 2 };
    const unreached = plan.items.filter((item) => !items.includes(item)).map(({ key }) => key);
    await hold.store.enroll(run.id, items, [...plan.unselected, ...unreached]);
    await hold.store.keepSheet(run.id, plan.sheet);
    await again(hold.store, run, plan, options);
    const before = (await hold.store.counts(run.id)).archived;
    const due = plan.items.filter((item) => item.due).length;
    const execution = await execute({ ...options, hold, run, me, inOrder: plan.fit.items < due });
    return await use({ execution, leftOut: plan.items.length - items.length, before, startedAt, hold });
  } finally {
    await hold.close();
  }
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

/** The items to go on with. Throws when the plan says that the run must not begin. */
function submittable(plan: Plan, onInsufficient: RunOptions["onInsufficient"]): NewItem[] {
  for (const blocker of plan.blockers) {
    if (blocker.kind === "no_subscription" || blocker.kind === "past_due") {
      throw new EarlyExit("key", `${blocker.message} Nothing was submitted.`);
    }
    if (blocker.kind === "made_before")
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
        `the balance of ${showCredits(blocker.balance)} credits pays for no item. Nothing was submitted.`,
      );
    }
  }
  return plan.items.filter((item) => !item.due || item.fits || onInsufficient !== "fit");
}

/** No item of the plan is at the service or waits for its download. */
function nothingElse(plan: Plan): boolean {
  return plan.items.every((item) => item.due || item.standing === "archived" || item.standing === "failed");
}
