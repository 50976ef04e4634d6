import { resolve } from "node:path";
import type { z } from "zod";
import { defined } from "../core/defined.js";
import { defaultRunOptions, type RunOptions } from "../core/next/options.js";
import type { Log } from "../core/ports/send.js";
import type { OwnLimits } from "../core/quota/quota.js";
import type { plan as planDocument } from "../documents/plan.js";
import { planJob } from "../job/run/plan-job.js";
import type { Host } from "../machine.js";
import { keptValues } from "../options/kept.js";
import { runFlags } from "../options/run.js";
import type { Plan } from "../plan/plan.js";
import { planJson } from "../plan/plan-json.js";
import { refuseUnusable } from "../workspace/state-folder/state-folder.js";
import { findWorkspace, forReading, type WorkspaceHints } from "../workspace/workspace.js";
import { rethrowAsPrinted } from "./printed-errors.js";
import { connectionOf, type ServiceAddress, silentLog } from "./service.js";
import { checkManifestSettings } from "./settings.js";
import { type SheetSettings, sheetOptionsOf } from "./sheet.js";

/** Where the history and the files of a job are. */
export interface Whereabouts {
  /** The folder with `.bulkgen/`; the nearest one at or above the manifest by default. */
  workspace?: string;
  /** Where the files go; `outputs` in the workspace by default. */
  out?: string;
  /** `postgres://USER@HOST/DATABASE`, if the workspace's state is in a PostgreSQL database; needs the package pg. */
  databaseUrl?: string;
}

/** The limits of a run, and the settings of its plan. */
export interface PlanSettings extends SheetSettings, Whereabouts {
  service: ServiceAddress;
  /** The most that the run may spend, in credits. */
  maxCredits?: number;
  /** The part of the balance to keep, in credits. */
  keepCredits?: number;
  /** The most that one model may cost, in credits, by model; the others continue. */
  maxCreditsPerModel?: Readonly<Record<string, number>>;
  /** What to do when the balance does not cover the plan; `refuse` by default. */
  onInsufficient?: "refuse" | "fit" | "stop" | "wait";
  /** Limits of your own, below those of the account's plan: requests per minute and day, and a share in per cent. */
  limits?: OwnLimits;
  signal?: AbortSignal;
  /** Gets warnings, and each request with its outcome, but no body and no key. For example a pino logger. Default: none. */
  log?: Log;
}

/** What a run needs besides its plan. */
export interface RunDetails {
  /**
   * Gets the plan before anything is submitted; the run continues only if it returns true. `plan.money.within` is what
   * the run may spend.
   */
  agree?: (plan: PlannedJob) => boolean | Promise<boolean>;
  /** Leave out invalid rows, and list them in problems.csv in the job's folder. */
  skipInvalid?: boolean;
  /** Submit nothing more once this many items have failed. */
  maxFailures?: number;
  /** How often to retry a task that failed at the provider; 1 by default. */
  retries?: number;
  /** Paid requests in flight at once; by the account's plan by default. */
  lanes?: number;
  /** What to do when the day's requests are used up; `stop` by default. */
  onDailyLimit?: "stop" | "wait";
  /** What to do when another run is using the workspace; `fail` by default. */
  ifLocked?: "fail" | "wait" | "skip";
  /** Stop when the service cannot be reached for this long (ms); 5 minutes by default. */
  unreachableMs?: number;
}

/** What a run would do and cost. Credits are numbers, times ISO 8601 in UTC, lists whole arrays. */
export type PlannedJob = Omit<z.output<typeof planDocument>, "graph">;

/**
 * Throws EarlyExit if nothing of the manifest can be planned, or if the service cannot be reached; RangeError for a setting
 * that has no meaning.
 */
export function planManifest(on: Host, manifest: string, settings: PlanSettings): Promise<PlannedJob> {
  return planned(on, manifest, settings).catch((error: unknown) => rethrowAsPrinted(error, on.cwd));
}

async function planned(on: Host, manifest: string, settings: PlanSettings): Promise<PlannedJob> {
  checkManifestSettings(manifest, settings);
  const connection = connectionOf(settings.service, on.env);
  const { sandbox } = connection;
  const found = findWorkspace(hintsOf(on, manifest, settings, sandbox));
  refuseUnusable(found);
  return planJob(
    {
      workspace: forReading(found, sandbox),
      manifest: resolve(on.cwd, manifest),
      connect: async () => ({ connection, close: async () => {} }),
      ...sheetOptionsOf(on, settings),
      run: runOptionsOf(settings, sandbox),
      publish: { given: {}, configured: {} },
      after: { given: {}, configured: {} },
      agreeToForeignUse: async () => settings.acceptForeignUse ?? false,
      environment: on.env,
      clock: on.clock,
      log: settings.log ?? silentLog,
      signal: settings.signal ?? new AbortController().signal,
    },
    async (plan) => plannedJob(plan),
  );
}

/** @internal */
export function hintsOf(
  { cwd, env }: Host,
  manifest: string,
  { workspace, out, databaseUrl }: Whereabouts,
  sandbox: boolean,
): WorkspaceHints {
  return {
    cwd,
    env,
    sandbox,
    manifest,
    ...defined({ named: workspace, out, databaseUrl }),
  };
}

/**
 * The options of a run that settings of the library set: those that a run keeps of its flags, under the flags' names.
 * @internal
 */
export function runOptionsOf(settings: PlanSettings & RunDetails, sandbox: boolean): RunOptions {
  const { limits, maxFailures, ...flags } = settings;
  const given: Readonly<Record<string, unknown>> = {
    ...flags,
    ...limits,
    ...(maxFailures === undefined ? {} : { maxFailures: { count: maxFailures } }),
  };
  return { ...defaultRunOptions, ...keptValues(runFlags, given, {}), sandbox };
}

/**
 * Reads the whole plan: its draft, with the items, is gone once it is closed.
 * @internal
 */
export function plannedJob(plan: Plan): PlannedJob {
  const document = planJson(plan);
  return {
    ...document,
    items: [...document.items],
    problems: [...document.problems],
    changed: [...document.changed],
    vanished: [...document.vanished],
    renamed: [...document.renamed],
    restored: [...document.restored],
    // The document has the fields of its schema, as the compiler checks for `plan --json`; only its lists are readonly.
  } as PlannedJob;
}
