import {
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
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
