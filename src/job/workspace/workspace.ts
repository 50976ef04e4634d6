import { existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { formerRoot } from "./claim.js";
import { readIdentity } from "./identity-file.js";

/** A folder with `.bulkgen/` in it, and where its things are. Sandbox items live apart, so a rehearsal never counts. */
export interface Workspace {
  root: string;
  /** Where its history was last used, when that was another folder: it was moved from there, or is a copy. */
  former: string | null;
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
  const sharedFolder = join(hints.env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "bulkgen");
  return {
    ...{ root, markerFolder, sharedFolder },
    // Rehearsals claim no folder, so theirs may be another.
    former: identity && !hints.sandbox ? formerRoot(identity.id, root, sharedFolder) : null,
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
