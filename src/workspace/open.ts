import { accessSync, constants, lstatSync } from "node:fs";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import type { LockedChoice, StopOrWait } from "../core/next/options.js";
import type { Log } from "../core/ports/send.js";
import type { OwnLimits } from "../core/quota/quota.js";
import type { Reason } from "../core/reason.js";
import { madeWritable, makeFolder, wayOut } from "../store/open.js";
import type { Store } from "../store/workspace/workspace.js";
import { sandboxFlag } from "../text/shell.js";
import { type OpenAccount, openAccount, type ServiceConnection } from "./account.js";
import { resumeCommand } from "./find-run.js";
import { isRehearsal, refuseForgotten, refuseMoved, refuseOutdated, rememberDatabase } from "./history.js";
import { takeWorkspaceLock, type WorkspaceLock } from "./lock.js";
import type { Workspace } from "./workspace.js";

/** What one execution keeps open from start to end. */
export interface WorkspaceSession {
  workspace: Workspace;
  store: Store;
  account: OpenAccount;
  connection: ServiceConnection;
  lock: WorkspaceLock;
  close(): Promise<void>;
}

export interface WorkspaceSessionOptions {
  workspace: Workspace;
  /** Called once the lock is taken: starts the sandbox or connects to the service. */
  connect(): Promise<{ connection: ServiceConnection; close(): Promise<void> }>;
  limits: OwnLimits;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  onDailyLimit: StopOrWait;
  onWait(reason: Reason): void;
  /** What to do if another run has the lock. */
  ifLocked: LockedChoice;
  /** Called repeatedly while waiting for the lock. */
  onLocked(message: string): void;
}

/** Takes the workspace's lock and opens what a run needs. Throws EarlyExit if another run has the lock. */
export async function openWorkspaceSession(options: WorkspaceSessionOptions): Promise<WorkspaceSession> {
  const { workspace, clock, log, signal } = options;
  const lock = await lockWorkspace(options);
  const undo: (() => Promise<void> | void)[] = [() => lock.release()];
  const close = async () => {
    while (undo.length > 0) await undo.pop()?.();
  };
  try {
    refuseLinkedReceipts(workspace);
    // It may have been moved while this process waited for the lock.
    refuseMoved(workspace);
    const store = await lock.openStore();
    undo.push(() => store.close());
    await refuseOutdated(workspace, store);
    rememberDatabase(workspace, { replaces: true });
    const { connection, close: disconnect } = await options.connect();
    undo.push(disconnect);
    const account = await openAccount({
      ...options,
      connection,
      place: workspace,
      clock,
      log,
      signal,
    });
    undo.push(() => account.close());
    await refuseForgotten(workspace, store, account.spendLog);
    const service = { ...connection, origin: account.origin };
    return { workspace, store, account, connection: service, lock, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Receipts are never written through a link, so a run could record nothing and would wait. Throws EarlyExit. */
function refuseLinkedReceipts({ receiptsFile }: Pick<Workspace, "receiptsFile">): void {
  if (lstatSync(receiptsFile, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new EarlyExit(
      "usage",
      `${receiptsFile} is a symbolic link; expected a file. Nothing was sent. Put the file in its place.`,
    );
}

/** Milliseconds between two attempts to get the lock. */
const lockMs = 1_000;

/** Takes the workspace's lock, or follows --if-locked if another process has it. Throws EarlyExit. */
export async function lockWorkspace({
  workspace,
  ifLocked,
  clock,
  signal,
  onLocked,
}: Pick<
  WorkspaceSessionOptions,
  "workspace" | "ifLocked" | "clock" | "signal" | "onLocked"
>): Promise<WorkspaceLock> {
  for (;;) {
    const lock = await takeWorkspaceLock(workspace, clock);
    if (lock) {
      rememberDatabase(workspace, { replaces: false });
      return lock;
    }
    const held = `another run is using the workspace ${workspace.root}`;
    if (ifLocked === "skip") throw new EarlyExit("done", `${held}; skipped, nothing was sent`);
    if (ifLocked === "fail") {
      throw new EarlyExit(
        "locked",
        `${held}. Nothing was sent. Wait for it to end; \`bulkgen status${sandboxFlag({ sandbox: isRehearsal(workspace) })}\` shows its progress.`,
      );
    }
    onLocked(`${held}; waiting for it to end`);
    await clock.sleep(lockMs, signal);
    if (signal.aborted)
      throw new EarlyExit("interrupted", "interrupted while waiting for the workspace; nothing was sent");
  }
}

/** Ensures, before anything is paid, that the output folder is writable. Throws EarlyExit. */
export function prepareOutFolder(folder: string): void {
  try {
    makeFolder(folder);
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new EarlyExit(
      "usage",
      `the output folder ${folder} cannot be written (${code ?? message}). Nothing was sent. To continue, ${madeWritable(code, "it")}, or name another with --out.`,
    );
  }
}

/** How a database that became unusable ends the run in good order; null for any other error, which is a defect. */
export function endOnDatabaseError(
  error: unknown,
  run: Parameters<typeof resumeCommand>[0],
): EarlyExit | null {
  const todo = wayOut(error);
  if (todo === null) return null;
  return new EarlyExit(
    "unfinished",
    `the run stopped (${(error as Error).message}). All answers received so far are saved. To continue: ${todo}; then \`${resumeCommand(run, false)}\`.`,
  );
}
