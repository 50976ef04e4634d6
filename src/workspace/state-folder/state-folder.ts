import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Clock, Random } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { takeLock } from "../../store/lock.js";
import { copyDatabase, madeWritable, makeFolder, ownFolder } from "../../store/open.js";
import { shellWord } from "../../text/shell.js";
import { isRehearsal, refuseLost } from "../history.js";
import {
  claim,
  claimedBy,
  createIdentity,
  readIdentity,
  type WorkspaceIdentity,
  workspacesFolder,
  writeIdentity,
} from "../identity.js";
import { noteLockOwner } from "../lock.js";
import { noSharedFolder, type Workspace, workspaceExists } from "../workspace.js";
import { filesystemInfo, tryLock } from "./filesystem.js";

export interface PlaceOptions {
  /** The workspace according to its folder, which changes once the state has moved. */
  find(): Workspace;
  /** Makes the folder a workspace if it is none. */
  make: boolean;
  /** The system's mount table; null if there is none. */
  mounts: string | null;
  clock: Clock;
  random: Random;
  /** Called with one line that says where the state is kept from now on. */
  tell(line: string): void;
  /** Replaces the test of locks. */
  locks?(folder: string): string | null;
}

/**
 * Ensures, before anything is locked or sent, that the state is where a database is safe: if the folder is on a network,
 * synced, or has no locks, the state moves to the local state folder and a file says where it is. A copied workspace,
 * and one whose history is lost, is refused: it would pay again for what was paid already. Throws EarlyExit.
 */
export function placeWorkspace(options: PlaceOptions): Workspace {
  const workspace = options.find();
  if (!options.make && !existsSync(workspace.markerFolder)) return workspace;
  refuseLost(workspace);
  try {
    return placed(workspace, options);
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (error instanceof EarlyExit || code === undefined) throw error;
    const { sharedFolder, stateFile, markerFolder } = workspace;
    // The workspaces of this machine are recorded in the user's folder, which may be the folder that cannot be written.
    if (path !== undefined && !path.startsWith(markerFolder))
      throw new EarlyExit("usage", noSharedFolder(sharedFolder, code, stateFile));
    const todo = madeWritable(
      code,
      existsSync(markerFolder) || code === "ENOTDIR" ? markerFolder : workspace.root,
    );
    // Another workspace does not know what this one has paid for, and would pay again.
    const elsewhere = workspaceExists(workspace) ? "" : ", or name another folder with --workspace";
    throw new EarlyExit(
      "usage",
      `the workspace ${workspace.root} cannot be written (${code}). Nothing was sent. To continue, ${todo}${elsewhere}.`,
    );
  }
}

function placed(workspace: Workspace, options: PlaceOptions): Workspace {
  const { markerFolder } = workspace;
  const identity = readIdentity(markerFolder);
  if (workspace.database !== null) return onServer(workspace, workspace.database.shown, options);
  if (identity?.state) {
    claimOrRefuse(workspace, identity);
    return workspace;
  }
  makeFolder(markerFolder, ownFolder);
  const why = troubleAt(markerFolder, options);
  const moves = why !== null && canKeep(workspace, why, options);
  if (!moves && isRehearsal(workspace)) return workspace;
  const first = { id: options.random.uuid(), state: null, host: hostname(), why: null };
  const own = identity ?? createIdentity(markerFolder, first);
  claimOrRefuse(workspace, own);
  if (!moves) return workspace;
  const state = join(workspacesFolder(workspace.sharedFolder), own.id);
  moveState(markerFolder, { ...own, state, host: hostname(), why }, options.clock);
  options.tell(
    `the state of this workspace is kept in ${state}: ${workspace.root} is not safe for a database (${why}); outputs stay where they are`,
  );
  return options.find();
}

/** A state on a server may have many folders. Each remembers the server once it has answered. */
function onServer(workspace: Workspace, database: string, { random }: PlaceOptions): Workspace {
  const { markerFolder, stateFile } = workspace;
  makeFolder(dirname(stateFile), ownFolder);
  if (isRehearsal(workspace)) return workspace;
  const known = readIdentity(markerFolder);
  if (known?.database === undefined && existsSync(stateFile))
    throw new EarlyExit(
      "usage",
      `the state of ${workspace.root} is in ${stateFile}, not in the database ${database}. Nothing was sent. Move it with \`bulkgen migrate --from ${shellWord(stateFile)}\`, or unset BULKGEN_DATABASE_URL`,
    );
  if (known === null)
    createIdentity(markerFolder, { id: random.uuid(), state: null, host: hostname(), why: null });
  return workspace;
}

/** Why no database should be kept there; null if it may. */
function troubleAt(folder: string, { mounts, locks = tryLock }: PlaceOptions): string | null {
  const { trouble, known } = filesystemInfo(folder, mounts);
  if (trouble !== null || known) return trouble;
  const lockTrouble = locks(folder);
  return lockTrouble === null ? null : `locks do not work: ${lockTrouble}`;
}

/**
 * Whether the local state folder is better. If the home folder is on a network too, the state stays, provided its locks
 * work. Throws EarlyExit if no folder is good enough.
 */
function canKeep({ markerFolder, sharedFolder }: Workspace, why: string, options: PlaceOptions): boolean {
  const { locks = tryLock } = options;
  const elsewhere = workspacesFolder(sharedFolder);
  mkdirSync(elsewhere, { recursive: true, mode: ownFolder });
  const other = troubleAt(elsewhere, options);
  if (other === null) return true;
  if (locks(markerFolder) === null) return false;
  if (locks(elsewhere) === null) return true;
  throw new EarlyExit(
    "usage",
    `no folder is safe for this workspace's state: ${why}; nor is ${elsewhere} (${other}). Nothing was sent. Name a folder on a local disk with --workspace, or in XDG_STATE_HOME.`,
  );
}

/**
 * Refuses a workspace whose history is lost or that is a copy of another folder, for a command that changes nothing: its
 * plan could not be run. A rehearsal costs nothing, so a copy that keeps its own sandbox state is not refused. Throws EarlyExit.
 */
export function refuseUnusable(workspace: Workspace): void {
  refuseLost(workspace);
  if (workspace.database !== null) return;
  const identity = readIdentity(workspace.markerFolder);
  if (identity && (identity.state !== null || !isRehearsal(workspace))) refuseCopy(workspace, identity);
}

/** Throws EarlyExit if this workspace is a copy of another folder. */
export function refuseCopy(workspace: Workspace, { id }: WorkspaceIdentity): void {
  const other = claimedBy(id, workspace);
  if (other === null) return;
  throw new EarlyExit(
    "usage",
    `${workspace.root} is a copy of the workspace ${other}: both would pay for the items not submitted yet. Nothing was sent. Use ${other}, or make this folder an independent workspace: \`bulkgen doctor --separate\`.`,
  );
}

function claimOrRefuse(workspace: Workspace, identity: WorkspaceIdentity): void {
  refuseCopy(workspace, identity);
  claim(identity.id, workspace);
}

/** The files of a state; the sandbox's are in their own folder. */
const databases = ["state.db", "accounts.db", "service.db"];
const texts = ["receipts.jsonl"];

/**
 * Moves the state to the folder that the identity names, and leaves the identity behind. Nothing has changed until the
 * identity is written; afterwards the old files are renamed, so that they are not taken for a state. Throws EarlyExit
 * if a run is in progress here.
 */
function moveState(
  markerFolder: string,
  identity: WorkspaceIdentity & { state: string },
  clock: Clock,
): void {
  const release = lockState(markerFolder, identity.state, clock);
  try {
    if (readIdentity(markerFolder)?.state === identity.state) return;
    const copied = copyState(markerFolder, identity.state);
    writeIdentity(markerFolder, identity);
    for (const path of copied) renameSync(path, `${path}.moved`);
  } finally {
    release();
  }
}

/** Copies a state from one folder to another; returns the copied files. */
function copyState(from: string, to: string): string[] {
  return ["", "sandbox"].flatMap((name) => copyPart(join(from, name), join(to, name)));
}

/** Takes the locks of both folders, since either may be in use. Returns what releases them. Throws EarlyExit. */
export function lockState(from: string, to: string, clock: Clock): () => void {
  const parts = [from, join(from, "sandbox")].filter((folder) => existsSync(join(folder, "state.db")));
  const locks: (() => void)[] = [];
  const release = () => {
    for (const each of locks.splice(0)) each();
  };
  try {
    for (const folder of new Set([to, ...parts])) locks.push(locked(folder, clock));
    return release;
  } catch (error) {
    release();
    throw error;
  }
}

/** Copies the files of one folder; returns those that were copied. */
function copyPart(from: string, to: string): string[] {
  const present = (names: readonly string[]) =>
    names.map((name) => join(from, name)).filter((path) => existsSync(path));
  const [data, lines] = [present(databases), present(texts)];
  if (data.length + lines.length > 0) mkdirSync(to, { recursive: true, mode: ownFolder });
  for (const path of data) copyDatabase(path, join(to, basename(path)));
  for (const path of lines) {
    const target = join(to, basename(path));
    writeFileSync(`${target}.part`, readFileSync(path), { flush: true, mode: 0o600 });
    renameSync(`${target}.part`, target);
  }
  return [...data, ...lines];
}

function locked(folder: string, clock: Clock): () => void {
  const file = join(folder, "run.lock");
  const lock = takeLock(file);
  if (!lock) {
    throw new EarlyExit("locked", `another run is using the workspace ${dirname(folder)}. Nothing was sent.`);
  }
  const note = noteLockOwner(file, clock);
  return () => {
    note.remove();
    lock.release();
  };
}

/** Makes a copied workspace independent. Returns the folder that it was a copy of. Throws EarlyExit if it is not a copy. */
export function separateWorkspace(
  workspace: Workspace,
  { clock, random }: { clock: Clock; random: Random },
): string {
  const { root, markerFolder, sharedFolder } = workspace;
  const identity = readIdentity(markerFolder);
  const other = identity && claimedBy(identity.id, workspace);
  if (!other) throw new EarlyExit("done", `${root} is not a copy of another workspace; nothing was changed`);
  const id = random.uuid();
  const own = { ...identity, id, host: hostname() };
  if (identity.state === null) {
    writeIdentity(markerFolder, own);
  } else {
    const state = join(workspacesFolder(sharedFolder), id);
    const release = lockState(identity.state, state, clock);
    try {
      copyState(identity.state, state);
      writeIdentity(markerFolder, { ...own, state });
    } finally {
      release();
    }
  }
  claim(id, workspace);
  return other;
}
