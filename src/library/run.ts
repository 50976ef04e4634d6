import { setMaxListeners } from "node:events";
import { resolve } from "node:path";
import { EarlyExit } from "../core/exit.js";
import type { RunEvent } from "../documents/run.js";
import { openEvents } from "../job/run/events.js";
import { runJob } from "../job/run/run-job.js";
import type { Host } from "../machine.js";
import { unreachableMsDefault } from "../options/shared.js";
import { summaryOf } from "../report/summary.js";
import { placeWorkspace } from "../workspace/state-folder/state-folder.js";
import { findWorkspace } from "../workspace/workspace.js";
import { hintsOf, type PlanSettings, plannedJob, type RunDetails, runOptionsOf } from "./plan.js";
import { rethrowAsPrinted } from "./printed-errors.js";
import { connectionOf, silentLog } from "./service.js";
import { checkManifestSettings } from "./settings.js";
import { sheetOptionsOf } from "./sheet.js";

/**
 * The settings of a run. A run spends credits, so it needs a limit from the caller: `maxCredits`, `agree`, or both.
 */
export type RunRequirements = PlanSettings &
  RunDetails &
  ({ maxCredits: number } | Required<Pick<RunDetails, "agree">>);

/**
 * Rejects with EarlyExit if the run cannot start, and with RangeError for a setting that has no meaning. A run that has
 * started always ends with `run_finished`.
 */
export async function* runManifest(
  on: Host,
  manifest: string,
  settings: RunRequirements,
): AsyncGenerator<RunEvent, void, void> {
  try {
    yield* eventsOf(on, manifest, settings);
  } catch (error) {
    rethrowAsPrinted(error, on.cwd);
  }
}

async function* eventsOf(
  on: Host,
  manifest: string,
  settings: RunRequirements,
): AsyncGenerator<RunEvent, void, void> {
  checkManifestSettings(manifest, settings);
  const { agree, log = silentLog } = settings;
  if (settings.maxCredits === undefined && agree === undefined)
    throw new EarlyExit(
      "usage",
      "a run spends credits: name the most with maxCredits, or agree to its plan with agree. Nothing was sent.",
    );
  const connection = connectionOf(settings.service, on.env);
  const { clock, env } = on;
  const run = runOptionsOf(settings, connection.sandbox);
  const workspace = placeWorkspace({
    find: () => findWorkspace(hintsOf(on, manifest, settings, connection.sandbox)),
    make: true,
    mounts: on.mounts(),
    clock,
    random: on.random,
    tell: (line) => log.warn({}, line),
  });
  const left = new AbortController();
  const interrupt = settings.signal ? AbortSignal.any([left.signal, settings.signal]) : left.signal;
  // Every request in flight listens to it.
  setMaxListeners(0, interrupt);
  const queued: RunEvent[] = [];
  let isOver = false;
  let wake = () => {};
  const events = openEvents(workspace, clock, (event) => {
    queued.push(event);
    wake();
  });
  const work = runJob(
    {
      workspace,
      connect: async () => ({ connection, close: async () => {} }),
      clock,
      environment: env,
      publish: { given: {}, configured: {} },
      after: { given: {}, configured: {} },
      log,
      interrupt,
      unreachableMs: settings.unreachableMs ?? unreachableMsDefault,
      onBegin: (begun) => events.begin(begun),
      onProgress: (progress) => events.progress(progress),
      onWait: (reason) => events.waiting(reason),
      agreeToForeignUse: async () => settings.acceptForeignUse ?? false,
      ifLocked: settings.ifLocked ?? "fail",
      onLocked: (message) => log.info({}, message),
      manifest: resolve(on.cwd, manifest),
      ...sheetOptionsOf(on, settings),
      skipInvalid: settings.skipInvalid ?? false,
      run,
      scheduled: null,
      consent: async (plan) => agree === undefined || (await agree(plannedJob(plan))) === true,
    },
    async (outcome) => {
      const { facts } = await summaryOf(outcome, clock);
      const { exit, stops } = outcome.execution;
      await events.finish({ exit, facts, stops });
    },
  ).finally(async () => {
    try {
      await events.close();
    } finally {
      isOver = true;
      wake();
    }
  });
  // It may fail while nobody waits for the next event; whoever asks for that gets the error.
  work.catch(() => {});
  try {
    for (;;) {
      for (let event = queued.shift(); event !== undefined; event = queued.shift()) yield event;
      if (isOver) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    await work;
  } finally {
    left.abort();
    await work.catch(() => {});
  }
}
