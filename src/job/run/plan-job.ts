import type { Clock } from "../../clock.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Log } from "../../core/ports/send.js";
import type { Problem } from "../../core/problem.js";
import type { Reason } from "../../core/reason.js";
import { openManifest, type ReadOptions } from "../../manifest/read.js";
import { ItemNames } from "../../plan/names.js";
import type { Plan } from "../../plan/plan.js";
import type { PublishSettings } from "../../publish/publisher.js";
import { openDraft } from "../../store/draft/draft.js";
import type { Environment } from "../../text/environment.js";
import { openAccount, type ServiceConnection } from "../../workspace/account.js";
import { refuseForgotten, refuseOutdated } from "../../workspace/history.js";
import { openStore } from "../../workspace/state.js";
import { type Workspace, workspaceExists } from "../../workspace/workspace.js";
import type { AfterSettings } from "../after/settings.js";
import type { AgreeToForeignUse } from "../paid/foreign-use.js";
import { type PrepareOptions, prepare, publishProblem, type SheetOptions } from "./prepare.js";

export interface PlanJobOptions extends SheetOptions {
  workspace: Workspace;
  manifest: string;
  connect(): Promise<{ connection: ServiceConnection; close(): Promise<void> }>;
  /** The options that the run would have. */
  run: RunOptions;
  publish: PublishSettings;
  after: AfterSettings;
  agreeToForeignUse?: AgreeToForeignUse;
  agreeTo?: PrepareOptions["agreeTo"];
  /** The machine's environment, for the access to buckets. */
  environment: Environment;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** Called when a request waits for a slot in the quota: for what, until when (UTC ms). */
  onWait?(reason: Reason): void;
}

/**
 * The plan of a manifest, using the workspace's history if there is one. Changes nothing and takes no lock. `use` gets
 * the plan while it can be read. Throws EarlyExit.
 */
export async function planJob<Result>(
  options: PlanJobOptions,
  use: (plan: Plan) => Promise<Result>,
): Promise<Result> {
  const { workspace, clock } = options;
  const { connection, close } = await options.connect();
  // If opening fails, close what was opened before: an open sandbox would keep the process alive.
  const undo: (() => Promise<void> | void)[] = [close];
  try {
    const store = workspaceExists(workspace) ? await openStore(workspace, clock) : null;
    undo.push(() => store?.close());
    if (store) await refuseOutdated(workspace, store);
    const draft = openDraft();
    undo.push(() => draft.close());
    const account = await openAccount({
      ...options,
      connection,
      place: workspace,
      onDailyLimit: "stop",
    });
    undo.push(() => account.close());
    if (store) await refuseForgotten(workspace, store, account.spendLog);
    const { sandbox } = connection;
    const { origin } = account;
    const { plan } = await prepare({ ...options, origin, sandbox, account, store, draft });
    return await use(plan);
  } finally {
    while (undo.length > 0) await undo.pop()?.();
  }
}

/** How many problems are kept when a manifest is only checked. */
const problemsMax = 10_000;

/** The problems of a manifest that can be found offline, and its number of readable rows. */
export async function checkedManifest(
  path: string,
  options: ReadOptions,
): Promise<{ problems: Problem[]; rows: number }> {
  const names = new ItemNames();
  const problems: Problem[] = [];
  const found = (some: readonly Problem[]) => problems.push(...some.slice(0, problemsMax - problems.length));
  const manifest = await openManifest(path, options);
  found(publishProblem(manifest));
  const parts = manifest.parts();
  let rows = 0;
  for (;;) {
    const { value, done } = await parts.next();
    if (done) {
      if (value.refusal) problems.unshift(value.refusal);
      return { problems, rows: value.refusal ? 0 : rows };
    }
    rows += value.rows.length;
    found(value.problems);
    for (const row of value.rows) found(names.check(row));
  }
}
