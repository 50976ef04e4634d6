import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { readIdentity } from "./identity-file.js";
import type { Workspace } from "./workspace.js";

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
  const other = formerRoot(id, root, sharedFolder);
  return other !== null && hasId(join(other, basename(markerFolder)), id) ? other : null;
}

/** The folder that was the last to claim this id, where it is not this one; null where it is, or nothing is known. */
export function formerRoot(id: string, root: string, sharedFolder: string): string | null {
  const last = readClaim(claimFile(sharedFolder, id))?.root ?? null;
  return last !== null && last !== root && isOther(last, root) ? last : null;
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
