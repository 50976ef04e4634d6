import { resolve } from "node:path";
import { defined } from "../core/defined.js";
import { credits } from "../core/money.js";
import { defaultRunOptions, type RunOptions } from "../core/next/options.js";
import type { Log } from "../core/ports/send.js";
import type { OwnLimits } from "../core/quota/quota.js";
import { planJob } from "../job/run/plan-job.js";
import type { Host } from "../machine.js";
import type { Plan } from "../plan/plan.js";
import { type PlanDocument, planJson } from "../plan/plan-json.js";
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
  onInsufficient?: RunOptions["onInsufficient"];
  /** Limits of your own, below those of the account's plan: requests per minute and day, and a share in per cent. */
  limits?: OwnLimits;
  signal?: AbortSignal;
  /** Gets warnings, and each request with its outcome, but no body and no key. For example a pino logger. Default: none. */
  log?: Log;
}

type Lists = "items" | "problems" | "changed" | "vanished" | "renamed" | "restored";

/** What a run would do and cost. Credits are numbers, times ISO 8601 in UTC, lists whole arrays. */
export type PlannedJob = Omit<PlanDocument, Lists | "graph"> & {
  [List in Lists]: PlanDocument[List] extends Iterable<infer Entry> ? Entry[] : never;
};

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
      agreeToForeignUse: async () => settings.acceptForeignUse ?? false,
      environment: on.env,
      clock: on.clock,
      log: settings.log ?? silentLog,
      signal: settings.signal ?? new AbortController().signal,
    },
    async (plan) => plannedJob(plan),
  );
}

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

export function runOptionsOf(settings: PlanSettings, sandbox: boolean): RunOptions {
  const { maxCredits, keepCredits, maxCreditsPerModel, onInsufficient, limits } = settings;
  return {
    ...defaultRunOptions,
    sandbox,
    ...(maxCredits === undefined ? {} : { maxCredits: credits(maxCredits) }),
    ...(keepCredits === undefined ? {} : { keepCredits: credits(keepCredits) }),
    ...(maxCreditsPerModel === undefined
      ? {}
      : {
          modelCaps: Object.fromEntries(
            Object.entries(maxCreditsPerModel).map(([model, most]) => [model, credits(most)]),
          ),
        }),
    ...(onInsufficient === undefined ? {} : { onInsufficient }),
    ...limits,
  };
}

/** Reads the whole plan: its draft, with the items, is gone once it is closed. */
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
  };
}
