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

/**
 * `.bulkgen/workspace.json`: which workspace a folder is, and where its state lies when not beside this file. It is all
 * that stays in the folder then, so it must never be taken for "no history here".
 */
export interface WorkspaceIdentity {
  id: string;
  /** The folder of the state on the machine named by `host`; null where it lies beside this file. */
  state: string | null;
  host: string;
  /** Why it lies elsewhere, such as `nfs4`. */
  why: string | null;
}

export function identityFile(markerFolder: string): string {
  return join(markerFolder, "workspace.json");
}

/** Null where there is none. Throws EarlyExit for one that cannot be read. */
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
    `${path} is damaged: expected {"id", "state", "host", "why"}, got ${JSON.stringify(text.slice(0, 40))}. It says where this workspace's history lies. Nothing was sent. Restore it from a backup; where there is none, remove it and \`bulkgen doctor --rebuild\`.`,
  );
}

/** Gives a folder its identity. The one that another process gave it meanwhile counts. */
export function createIdentity(markerFolder: string, identity: WorkspaceIdentity): WorkspaceIdentity {
  const path = identityFile(markerFolder);
  const part = writePart(path, identity);
  try {
    // Of two processes one gives it, and it is whole when it is there.
    linkSync(part, path);
  } catch (error) {
    if (existsSync(path)) return readIdentity(markerFolder) ?? identity;
    // A file system without second names.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") copyFileSync(part, path, constants.COPYFILE_EXCL);
  } finally {
    rmSync(part, { force: true });
  }
  return identity;
}

/** Gives it another. Whole or not at all. */
export function writeIdentity(markerFolder: string, identity: WorkspaceIdentity): void {
  const path = identityFile(markerFolder);
  renameSync(writePart(path, identity), path);
}

function writePart(path: string, identity: WorkspaceIdentity): string {
  const part = `${path}.${identity.id}.part`;
  writeFileSync(part, `${JSON.stringify(identity)}\n`, { flush: true });
  return part;
}

function parse(text: string): WorkspaceIdentity | null {
  try {
    const { id, state, host, why } = JSON.parse(text) as Partial<WorkspaceIdentity>;
    if (typeof id !== "string" || !/^[\w-]+$/.test(id)) return null;
    if (state !== null && typeof state !== "string") return null;
    return { id, state, host: String(host ?? ""), why: why ?? null };
  } catch {
    return null;
  }
}

/**
 * Which folder a workspace is on this machine. A folder that was copied brings its id along, and both would submit what
 * neither has submitted yet; so the first to be used has the id, and the other is told.
 */
const claimSchema = z.object({
  /** Absolute path of the folder. */
  root: z.string(),
});
type Claim = z.infer<typeof claimSchema>;

type Claimant = Pick<Workspace, "root" | "markerFolder" | "sharedFolder">;

/** The other folder that is the workspace of this id; null when none is. */
export function claimedBy(id: string, { root, markerFolder, sharedFolder }: Claimant): string | null {
  const last = readClaim(claimFile(sharedFolder, id))?.root;
  if (last === undefined || last === root || !isOther(last, root)) return null;
  return hasId(join(last, basename(markerFolder)), id) ? last : null;
}

/** Claims an id that is not taken: for the first folder that has it, or for one that was moved. */
export function claim(id: string, { root, sharedFolder }: Claimant): void {
  const path = claimFile(sharedFolder, id);
  if (readClaim(path)?.root === root) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.part`, JSON.stringify({ root } satisfies Claim), { flush: true });
  renameSync(`${path}.part`, path);
}

function claimFile(sharedFolder: string, id: string): string {
  return join(workspacesFolder(sharedFolder), `${id}.json`);
}

/** Where the state of a workspace lies when it cannot lie in its folder, and the claims of all. */
export function workspacesFolder(sharedFolder: string): string {
  return join(sharedFolder, "workspaces");
}

/** Null where there is none. One that cannot be read is none either: the next claim replaces it. */
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

/** Not the same folder by another name. */
function isOther(path: string, root: string): boolean {
  const [one, other] = [path, root].map((folder) => statSync(folder, { throwIfNoEntry: false }));
  return !one || !other || one.dev !== other.dev || one.ino !== other.ino;
}

/** A folder with `.bulkgen/` in it, and where its things are. Sandbox items live apart, so a rehearsal never counts. */
export interface Workspace {
  root: string;
  /** Says by its name that this is a workspace; holds the state where that may lie here. */
  markerFolder: string;
  /** What this user's workspaces share, on a disk of this machine. */
  sharedFolder: string;
  stateFile: string;
  receiptsFile: string;
  lockFile: string;
  accountsFile: string;
  /** State of the sandbox service itself. */
  serviceFile: string;
  outFolder: string;
}

const marker = ".bulkgen";

/** What the place of a workspace depends on. */
export interface WorkspaceHints {
  cwd: string;
  /** The folder named by `--workspace`. */
  named?: string;
  manifest?: string;
  sandbox: boolean;
  /** `--out`, relative to the current folder. */
  out?: string;
  env: Readonly<Record<string, string | undefined>>;
}

/**
 * Finds the workspace: the one named, else the nearest at or above the manifest (or the current folder). Where there is
 * none, it will be the current folder when the manifest lies below it, else the manifest's own folder. So a run that
 * cron starts from elsewhere finds its history. Where the state lies elsewhere, a file in the folder says so. Throws
 * EarlyExit when that file is damaged.
 */
export function findWorkspace(hints: WorkspaceHints): Workspace {
  const root = hints.named === undefined ? nearestRoot(hints) : resolve(hints.cwd, hints.named);
  const markerFolder = join(root, marker);
  const identity = readIdentity(markerFolder);
  const whole = identity?.state ?? markerFolder;
  const state = hints.sandbox ? join(whole, "sandbox") : whole;
  const sharedFolder = join(
    hints.env.XDG_STATE_HOME || join(hints.env["HOME"] || homedir(), ".local", "state"),
    "bulkgen",
  );
  return {
    root,
    markerFolder,
    sharedFolder,
    ...filesIn(state),
    lockFile: join(state, "run.lock"),
    accountsFile: hints.sandbox ? join(state, "accounts.db") : join(sharedFolder, "accounts.db"),
    serviceFile: join(state, "service.db"),
    outFolder: hints.out
      ? resolve(hints.cwd, hints.out)
      : join(root, hints.sandbox ? "sandbox-outputs" : "outputs"),
  };
}

/** What is in the folder of a state. */
export function filesIn(state: string): Pick<Workspace, "stateFile" | "receiptsFile"> {
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
 * The workspace for a command that only looks: a rehearsal in a folder that has none is kept in memory, so that looking
 * leaves nothing behind.
 */
export function forLooking(workspace: Workspace, sandbox: boolean): Workspace {
  if (!sandbox || existsSync(dirname(workspace.serviceFile))) return workspace;
  return { ...workspace, serviceFile: ":memory:", accountsFile: ":memory:" };
}

/** Whether the workspace has been used. */
export function workspaceExists(workspace: Workspace): boolean {
  return existsSync(workspace.stateFile);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || !(way === ".." || way.startsWith(`..${"/"}`) || way.startsWith("/"));
}
