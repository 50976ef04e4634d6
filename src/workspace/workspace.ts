import { existsSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { EarlyExit } from "../core/exit.js";
import { manifestFolder } from "../manifest/folder.js";
import { type DatabaseAddress, databaseAddress } from "../store/postgres/address.js";
import type { Environment } from "../text/environment.js";
import { homeFolder } from "../text/home.js";
import { shellWord } from "../text/shell.js";
import { leaves } from "../text/within.js";
import { identityFile, isOther, readIdentity, type WorkspaceIdentity, workspacesFolder } from "./identity.js";

/** A folder with `.bulkgen/`, and the paths of its files. Sandbox items are kept apart, so a rehearsal never counts. */
export interface Workspace {
  root: string;
  /** `.bulkgen`, which marks a workspace and contains its state, if that is kept here. */
  markerFolder: string;
  /** The folder shared by this user's workspaces, on a local disk. */
  sharedFolder: string;
  stateFile: string;
  receiptsFile: string;
  lockFile: string;
  accountsFile: string;
  /** The PostgreSQL database that has state and accounts instead of these files; null if there is none. */
  database: DatabaseAddress | null;
  /** State of the sandbox service itself. */
  serviceFile: string;
  outFolder: string;
}

export const markerName = ".bulkgen";

/** What decides which folder is the workspace. */
export interface WorkspaceHints {
  cwd: string;
  /** The folder named by `--workspace`. */
  named?: string;
  manifest?: string;
  sandbox: boolean;
  /** `--out`, relative to the current folder. */
  out?: string;
  /** `--database-url`. */
  databaseUrl?: string;
  env: Environment;
}

/**
 * Finds the workspace: the one named, else the nearest at or above the manifest (or the current folder). If there is
 * none, it will be the current folder if the manifest is below it, else the manifest's folder, so a run that cron starts
 * from elsewhere finds its history. If the state is elsewhere, a file in the folder says where. Throws EarlyExit if that
 * file is damaged, or names a state that is not this workspace's.
 */
export function findWorkspace(hints: WorkspaceHints): Workspace {
  const root = hints.named === undefined ? nearestRoot(hints) : resolve(hints.cwd, hints.named);
  const markerFolder = join(root, markerName);
  const sharedFolder = sharedFolderOf(hints.env);
  const identity = readIdentity(markerFolder);
  if (identity) refuseStrangeState(identity, markerFolder, sharedFolder);
  const whole = identity?.state ?? markerFolder;
  const state = hints.sandbox ? join(whole, "sandbox") : whole;
  return {
    root,
    markerFolder,
    sharedFolder,
    ...filesIn(state),
    lockFile: join(state, "run.lock"),
    accountsFile: accountsIn(hints.sandbox ? state : sharedFolder),
    database: hints.databaseUrl === undefined ? null : addressOf(hints.databaseUrl, hints.sandbox),
    serviceFile: join(state, "service.db"),
    outFolder: hints.out
      ? resolve(hints.cwd, hints.out)
      : join(root, hints.sandbox ? "sandbox-outputs" : "outputs"),
  };
}

function addressOf(url: string, sandbox: boolean): DatabaseAddress {
  try {
    return databaseAddress(url, { sandbox });
  } catch (error) {
    throw new EarlyExit("usage", `--database-url: ${(error as Error).message}. Nothing was sent.`);
  }
}

/** The folder shared by this user's workspaces. */
export function sharedFolderOf(env: WorkspaceHints["env"]): string {
  const { XDG_STATE_HOME: given = "" } = env;
  // The XDG specification wants a relative path ignored: each current folder would have a quota of its own.
  const state = isAbsolute(given) ? given : join(homeFolder(env), ".local", "state");
  return join(state, "bulkgen");
}

/** Why the folder that all workspaces share cannot be used, and what to do. */
export function noSharedFolder(folder: string, code: string | undefined, stateFile: string): string {
  const verb = existsSync(folder) ? "written" : "made";
  // A client of the library has no workspace.
  const elsewhere =
    dirname(stateFile) === folder
      ? "set XDG_STATE_HOME to a folder that this user can write"
      : sharedElsewhere(stateFile);
  return `${folder} cannot be ${verb} (${code}): bulkgen keeps the data there that all your workspaces share. Nothing was sent. To keep it elsewhere from now on: ${elsewhere}`;
}

/** The command that keeps what all workspaces share beside this workspace. */
export function sharedElsewhere(stateFile: string): string {
  return `\`export XDG_STATE_HOME=${shellWord(join(dirname(dirname(stateFile)), ".state"))}\``;
}

/** The database of the accounts in such a folder. */
export function accountsIn(folder: string): string {
  return join(folder, "accounts.db");
}

/**
 * A folder may come from somebody else, and may name any folder as its state. bulkgen follows it only to the folder
 * that it makes itself for a workspace of this id. The claim of the id says whether this folder is the one with the id.
 */
function refuseStrangeState(
  { id, state }: WorkspaceIdentity,
  markerFolder: string,
  sharedFolder: string,
): void {
  if (state === null || !existsSync(state)) return;
  const own = join(workspacesFolder(sharedFolder), id);
  if (!isOther(state, own)) return;
  throw new EarlyExit(
    "usage",
    `${identityFile(markerFolder)} says that the state of this workspace is in ${state}, which bulkgen did not make for it: expected ${own}. Nothing was sent. If you have set XDG_STATE_HOME, set it as before. If another user works in this folder, take one of your own (--workspace). If the folder is a copy that somebody gave you, remove .bulkgen/ from the copy.`,
  );
}

/** The files in a state folder. */
function filesIn(state: string): Pick<Workspace, "stateFile" | "receiptsFile"> {
  return { stateFile: join(state, "state.db"), receiptsFile: join(state, "receipts.jsonl") };
}

function nearestRoot({ cwd, manifest }: WorkspaceHints): string {
  const start = manifest === undefined ? cwd : manifestFolder(resolve(cwd, manifest));
  for (let folder = start; ; folder = dirname(folder)) {
    if (isFolder(join(folder, markerName))) return folder;
    if (dirname(folder) === folder) break;
  }
  return leaves(cwd, start) ? start : cwd;
}

/**
 * The workspace for a command that changes nothing: a rehearsal in a folder without a workspace is kept in memory, so it
 * leaves nothing behind.
 */
export function forReading(workspace: Workspace, sandbox: boolean): Workspace {
  if (!sandbox || existsSync(dirname(workspace.serviceFile))) return workspace;
  return { ...workspace, serviceFile: ":memory:", accountsFile: ":memory:", database: null };
}

/** Whether the workspace has been used. A workspace on a server is made when it is opened. */
export function workspaceExists({ stateFile, database }: Pick<Workspace, "stateFile" | "database">): boolean {
  return database !== null || existsSync(stateFile);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
