import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { EarlyExit } from "../core/exit.js";
import { syncNames } from "../store/open.js";
import { makeWholeNow, writeWholeNow } from "../whole-file.js";

/**
 * `.bulkgen/workspace.json`: which workspace a folder is, and where its state is if not beside this file. If the state is
 * elsewhere, this is the only file in the folder, and that must not be taken for "no history here".
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
  makeWholeNow(identityFile(markerFolder), textOf(identity));
  syncNames(markerFolder);
  return readIdentity(markerFolder) ?? identity;
}

/** Replaces the identity atomically. */
export function writeIdentity(markerFolder: string, identity: WorkspaceIdentity): void {
  writeWholeNow(identityFile(markerFolder), textOf(identity));
  syncNames(markerFolder);
}

function textOf(identity: WorkspaceIdentity): string {
  return `${JSON.stringify(identity)}\n`;
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

/** The folders of a workspace. */
interface Claimant {
  root: string;
  markerFolder: string;
  sharedFolder: string;
}

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
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
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

/** Whether a folder is the workspace of this id. */
export function hasId(markerFolder: string, id: string): boolean {
  try {
    return readIdentity(markerFolder)?.id === id;
  } catch {
    return false;
  }
}

/** Whether the paths lead to different folders, not to one under two names. */
export function isOther(path: string, root: string): boolean {
  const [one, other] = [path, root].map((folder) => statSync(folder, { throwIfNoEntry: false }));
  return !one || !other || one.dev !== other.dev || one.ino !== other.ino;
}
