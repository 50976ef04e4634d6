import { existsSync, mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Clock, Random } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { claim, claimedBy, workspacesFolder } from "../workspace/claim.js";
import { isRehearsal, refuseLost } from "../workspace/history.js";
import { createIdentity, readIdentity, type WorkspaceIdentity } from "../workspace/identity-file.js";
import { madeWritable } from "../workspace/unwritable.js";
import { type Workspace, workspaceExists } from "../workspace/workspace.js";
import { pathsFollow } from "./follow-paths.js";
import { type Ground, standingOf } from "./ground.js";
import { moveState } from "./move-state.js";
import { type LockTrouble, tryLock, tryLockElsewhere } from "./try-locks.js";

export interface SettleOptions {
  /** The workspace as its folder says now: it says something else once the state has moved. */
  find(): Workspace;
  /** A folder that is no workspace yet becomes one. */
  make: boolean;
  ground: Ground;
  clock: Clock;
  random: Random;
  /** Told where the state lies from now on, in one line. */
  tell(line: string): void;
  /** Stands in for the trial of locks. */
  locks?(folder: string, known: boolean): LockTrouble;
}

/**
 * Sees to it, before anything is locked or sent, that the state lies where a database can be trusted: where the folder
 * is on a network, synced, or has no locks, the state moves to the local state folder and a file says where it is. A
 * workspace that is a copy, and one whose history is lost, is refused: it would pay for what was paid already.
 * Throws EarlyExit.
 */
export function settleWorkspace(options: SettleOptions): Workspace {
  const workspace = options.find();
  if (!options.make && !existsSync(workspace.markerFolder)) return workspace;
  refuseLost(workspace);
  try {
    return settled(workspace, options);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof EarlyExit || code === undefined) throw error;
    const todo = madeWritable(code, workspace.markerFolder);
    // Another workspace would know nothing of what this one has paid for, and pay for it again.
    const elsewhere = workspaceExists(workspace) ? "" : ", or name another folder with --workspace";
    throw new EarlyExit(
      "usage",
      `the workspace ${workspace.root} cannot be written (${code}). Nothing was sent. To go on, ${todo}${elsewhere}.`,
    );
  }
}

function settled(workspace: Workspace, options: SettleOptions): Workspace {
  const { markerFolder } = workspace;
  const identity = readIdentity(markerFolder);
  if (identity?.state) {
    claimed(workspace, identity, options);
    return workspace;
  }
  mkdirSync(markerFolder, { recursive: true });
  const why = troubleAt(markerFolder, options);
  const moves = why !== null && canHold(workspace, why, options);
  if (!moves && isRehearsal(workspace)) return workspace;
  const first = { id: options.random.uuid(), state: null, host: hostname(), why: null };
  const own = identity ?? createIdentity(markerFolder, first);
  claimed(workspace, own, options);
  if (!moves) return workspace;
  const state = join(workspacesFolder(workspace.sharedFolder), own.id);
  moveState(markerFolder, { ...own, state, host: hostname(), why }, options.clock);
  options.tell(
    `the state of this workspace is kept in ${state}: ${workspace.root} is no place for a database (${why}); outputs stay where they are`,
  );
  return options.find();
}

/** Why no database should lie there; null where it may. */
function troubleAt(folder: string, { ground, locks = tryLocks }: SettleOptions): string | null {
  const { trouble, known } = standingOf(folder, ground);
  if (trouble !== null) return trouble;
  const lockTrouble = locks(folder, known);
  return lockTrouble === null ? null : `locks do not work: ${lockTrouble}`;
}

function tryLocks(folder: string, known: boolean): LockTrouble {
  return tryLock(folder) ?? (known ? null : tryLockElsewhere(folder));
}

/**
 * Whether the local state folder is a better place. A home on a network is none; then the state stays, if only its locks
 * work. Throws EarlyExit where no place is good enough.
 */
function canHold({ markerFolder, sharedFolder }: Workspace, why: string, options: SettleOptions): boolean {
  const { locks = tryLocks } = options;
  const elsewhere = workspacesFolder(sharedFolder);
  mkdirSync(elsewhere, { recursive: true });
  const other = troubleAt(elsewhere, options);
  if (other === null) return true;
  if (locks(markerFolder, false) === null) return false;
  if (locks(elsewhere, false) === null) return true;
  throw new EarlyExit(
    "usage",
    `there is no place for this workspace's state: ${why}; and ${elsewhere} is none either (${other}). Nothing was sent. Name a folder on a local disk with --workspace, or in XDG_STATE_HOME.`,
  );
}

/**
 * The same refusals for a command that changes nothing: it would tell of a run that is not to be. A rehearsal pays
 * nothing, and one that keeps its state in the copy is not refused either. Throws EarlyExit.
 */
export function refuseUnusable(workspace: Workspace): void {
  refuseLost(workspace);
  const identity = readIdentity(workspace.markerFolder);
  if (identity && (identity.state !== null || !isRehearsal(workspace))) refuseCopy(workspace, identity);
}

/** Throws EarlyExit when another folder is this workspace. */
export function refuseCopy(workspace: Workspace, { id }: WorkspaceIdentity): void {
  const other = claimedBy(id, workspace);
  if (other === null) return;
  throw new EarlyExit(
    "usage",
    `${workspace.root} is a copy of the workspace ${other}: both would pay for what neither has submitted yet. Nothing was sent. Go on in ${other}, or make this one a workspace of its own: \`bulkgen doctor --separate\`.`,
  );
}

function claimed(workspace: Workspace, identity: WorkspaceIdentity, { clock }: SettleOptions): void {
  refuseCopy(workspace, identity);
  // A database that cannot be opened is told of by who needs it; where the workspace was is known until then.
  if (pathsFollow(workspace, clock)) claim(identity.id, workspace);
}
