import {
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { z } from "zod";
import { EarlyExit } from "../../core/exit.js";
import { syncNames } from "../../store/open.js";
import { type DatabaseAddress, databaseAddress } from "../../store/postgres/address.js";

/**
 * `.bulkgen/workspace.json`: which workspace a folder is, and where its state is if not beside this file. Then it is the
 * only file in the folder, which must never be taken for "no history here".
 */
export interface WorkspaceIdentity {
  id: string;
  /** The folder of the state on the machine named by `host`; null if it is beside this file. */
  state: string | null;
  host: string;
  /** Why it is elsewhere, e.g. `nfs4`. */
  why: string | null;
  /** The PostgreSQL database that has the state, without its password. */
  database?: string | undefined;
}

export function identityFile(markerFolder: string): string {
  return join(markerFolder, "workspace.json");
}

/** Null if there is none. Throws EarlyExit if it cannot be read. */
export function readIdentity(markerFolder: string): WorkspaceIdentity | null {
  const path = identityFile(markerFolder);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
  const parsed = parse(text);
  if (parsed) return parsed;
  throw new EarlyExit(
    "usage",
    `${path} is damaged: expected {"id", "state", "host", "why"}, got ${JSON.stringify(text.slice(0, 40))}. It says where this workspace's history is. Nothing was sent. Restore it from a backup; without a backup, remove it and run \`bulkgen doctor --rebuild\`.`,
  );
}

/** Gives a folder its identity. If another process was faster, its identity counts. */
export function createIdentity(markerFolder: string, identity: WorkspaceIdentity): WorkspaceIdentity {
  const path = identityFile(markerFolder);
  const part = writePart(path, identity);
  try {
    // A link makes the file appear complete, and only one of two processes succeeds.
    linkSync(part, path);
  } catch (error) {
    if (existsSync(path)) return readIdentity(markerFolder) ?? identity;
    // The file system has no hard links.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") copyFileSync(part, path, constants.COPYFILE_EXCL);
  } finally {
    rmSync(part, { force: true });
  }
  syncNames(dirname(path));
  return identity;
}

/** Replaces the identity atomically. */
export function writeIdentity(markerFolder: string, identity: WorkspaceIdentity): void {
  const path = identityFile(markerFolder);
  renameSync(writePart(path, identity), path);
  syncNames(dirname(path));
}

function writePart(path: string, identity: WorkspaceIdentity): string {
  const part = `${path}.${identity.id}.${process.pid}.part`;
  writeFileSync(part, `${JSON.stringify(identity)}\n`, { flush: true });
  return part;
}

function parse(text: string): WorkspaceIdentity | null {
  try {
    const { id, state, host, why, database } = JSON.parse(text) as Partial<WorkspaceIdentity>;
    if (typeof id !== "string" || !/^[\w-]+$/.test(id)) return null;
    if (state !== null && typeof state !== "string") return null;
    return { id, state, host: String(host ?? ""), why: why ?? null, ...(database ? { database } : {}) };
  } catch {
    return null;
  }
}

/**
 * Which folder has a workspace's id on this machine. A copied folder brings its id along, and both would submit the same
 * planned items, so the folder used first owns the id and the other is refused.
 */
const claimSchema = z.object({
  /** Absolute path of the folder. */
  root: z.string(),
});

type Claim = z.infer<typeof claimSchema>;

type Claimant = Pick<Workspace, "root" | "markerFolder" | "sharedFolder">;

/** The other folder that owns this id; null if there is none. */
export function claimedBy(id: string, { root, markerFolder, sharedFolder }: Claimant): string | null {
  const last = readClaim(claimFile(sharedFolder, id))?.root;
  if (last === undefined || last === root || !isOther(last, root)) return null;
  return hasId(join(last, basename(markerFolder)), id) ? last : null;
}

/** Claims a free id: for the first folder that has it, or for a moved folder. */
export function claim(id: string, { root, sharedFolder }: Claimant): void {
  const path = claimFile(sharedFolder, id);
  if (readClaim(path)?.root === root) return;
  mkdirSync(dirname(path), { recursive: true });
  const part = `${path}.${process.pid}.part`;
  writeFileSync(part, JSON.stringify({ root } satisfies Claim), { flush: true });
  renameSync(part, path);
}

function claimFile(sharedFolder: string, id: string): string {
  return join(workspacesFolder(sharedFolder), `${id}.json`);
}

/** Where a workspace's state is kept if it cannot be in its folder, and the claims of all workspaces. */
export function workspacesFolder(sharedFolder: string): string {
  return join(sharedFolder, "workspaces");
}

/** Null if there is none, or if it cannot be read: the next claim replaces it. */
function readClaim(path: string): Claim | null {
  try {
    return claimSchema.safeParse(JSON.parse(readFileSync(path, "utf8"))).data ?? null;
  } catch {
    return null;
  }
}

function hasId(markerFolder: string, id: string): boolean {
  try {
    return readIdentity(markerFolder)?.id === id;
  } catch {
    return false;
  }
}

/** Whether the paths are not two names of one folder. */
function isOther(path: string, root: string): boolean {
  const [one, other] = [path, root].map((folder) => statSync(folder, { throwIfNoEntry: false }));
  return !one || !other || one.dev !== other.dev || one.ino !== other.ino;
}

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

const marker = ".bulkgen";

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
  env: Readonly<Record<string, string | undefined>>;
}

/**
 * Finds the workspace: the one named, else the nearest at or above the manifest (or the current folder). If there is
 * none, it will be the current folder if the manifest is below it, else the manifest's folder, so a run that cron starts
 * from elsewhere finds its history. If the state is elsewhere, a file in the folder says where. Throws EarlyExit if that
 * file is damaged, or names a state that is not this workspace's.
 */
export function findWorkspace(hints: WorkspaceHints): Workspace {
  const root = hints.named === undefined ? nearestRoot(hints) : resolve(hints.cwd, hints.named);
  const markerFolder = join(root, marker);
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
  return join(env.XDG_STATE_HOME || join(env["HOME"] || homedir(), ".local", "state"), "bulkgen");
}

/** The database of the accounts in such a folder. */
export function accountsIn(folder: string): string {
  return join(folder, "accounts.db");
}

/**
 * A folder may come from somebody else, and name any folder as its state: it is followed only to the one that bulkgen
 * itself makes for a workspace of this id. Whether this folder is the one with the id, its claim says.
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
    `${identityFile(markerFolder)} says that the state of this workspace is in ${state}, which bulkgen did not make for it: expected ${own}. Nothing was sent. If the folder comes from somebody else, remove its .bulkgen/; if you have set XDG_STATE_HOME, set it as before.`,
  );
}

/** The files in a state folder. */
function filesIn(state: string): Pick<Workspace, "stateFile" | "receiptsFile"> {
  return { stateFile: join(state, "state.db"), receiptsFile: join(state, "receipts.jsonl") };
}

function nearestRoot({ cwd, manifest }: WorkspaceHints): string {
  const start = manifest === undefined ? cwd : dirname(resolve(cwd, manifest));
  for (let folder = start; ; folder = dirname(folder)) {
    if (isFolder(join(folder, marker))) return folder;
    if (dirname(folder) === folder) break;
  }
  return isBelow(start, cwd) ? cwd : start;
}

/**
 * The workspace for a command that changes nothing: a rehearsal in a folder without a workspace is kept in memory, so it
 * leaves nothing behind.
 */
export function forLooking(workspace: Workspace, sandbox: boolean): Workspace {
  if (!sandbox || existsSync(dirname(workspace.serviceFile))) return workspace;
  return { ...workspace, serviceFile: ":memory:", accountsFile: ":memory:", database: null };
}

/** Whether the workspace has been used. One on a server is made when it is opened. */
export function workspaceExists({ stateFile, database }: Pick<Workspace, "stateFile" | "database">): boolean {
  return database !== null || existsSync(stateFile);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || !(way === ".." || way.startsWith(`..${"/"}`) || way.startsWith("/"));
}
