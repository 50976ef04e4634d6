import { existsSync, mkdtempSync, rmdirSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Filesystem, filesystemInfo, nearest } from "../place/filesystem.js";
import type { Workspace } from "../workspace/workspace.js";
import { claimedBy, readIdentity } from "../workspace/workspace.js";
import { type Check, fine, problem, unchecked, warning } from "./check.js";

/** Free bytes below which the next films may not fit, and below which a run stops at once. */
const scarceBytes = 2_000_000_000;
const fullBytes = 50_000_000;

/** A folder of its own inside the nearest existing one, to try things in; or why there is none. */
export function scratchFolder(
  folder: string,
): { path: string; at: string } | { path: null; at: string; reason: string } {
  const at = nearest(folder);
  try {
    return { path: mkdtempSync(join(at, ".bulkgen-doctor-")), at };
  } catch (error) {
    return { path: null, at, reason: codeOf(error) };
  }
}

/** Where the state lies or will lie, and why. */
export function placeOfState(workspace: Workspace, ground: Filesystem): Check {
  const { root, markerFolder, sharedFolder, stateFile } = workspace;
  const expected = "a local disk that no program syncs";
  const identity = readIdentity(markerFolder);
  if (identity?.state) {
    return fine(
      "file system",
      expected,
      `the state lies in ${dirname(stateFile)}: ${root} is on ${identity.why}`,
    );
  }
  const { path, type, trouble } = filesystemInfo(dirname(stateFile), ground);
  if (trouble === null) {
    return type === null
      ? unchecked("file system", expected, `${path}: this system does not tell; no synced folder by its name`)
      : fine("file system", expected, `${type} at ${path}`);
  }
  const elsewhere = filesystemInfo(sharedFolder, ground).trouble;
  if (elsewhere === null) {
    return fine("file system", expected, `${path} is on ${trouble}; the state will lie in ${sharedFolder}`);
  }
  return warning("file system", {
    expected,
    got: `${path} on ${trouble}, and ${sharedFolder} on ${elsewhere}`,
    todo: "name a folder on a local disk with --workspace, or in XDG_STATE_HOME; --out may stay where it is",
  });
}

/** Whether this folder is the only one that is this workspace. */
export function onlyOne(workspace: Workspace): Check {
  const expected = "no copy of another workspace";
  const identity = readIdentity(workspace.markerFolder);
  const other = identity && claimedBy(identity.id, workspace);
  if (!other) return fine("copy", expected, "none");
  const todo =
    "go on there, or `bulkgen doctor --separate`: then both pay for what neither has submitted yet";
  return problem("copy", { expected, got: `of ${other}`, todo });
}

/** Whether files can be made where the outputs go. */
export function writable(folder: string): Check {
  const expected = "an output folder that can be written";
  const at = nearest(folder);
  try {
    rmdirSync(mkdtempSync(join(at, ".bulkgen-doctor-")));
    return fine("output folder", expected, existsSync(folder) ? folder : `${folder}, which will be made`);
  } catch (error) {
    const todo = "make it writable, or name another with --out";
    return problem("output folder", { expected, got: `${codeOf(error)} in ${at}`, todo });
  }
}

export async function diskSpace(folder: string): Promise<Check> {
  const expected = `${gigabytes(scarceBytes)} free`;
  try {
    const { bavail, bsize } = await statfs(nearest(folder));
    const free = bavail * bsize;
    const got = `${gigabytes(free)} free for ${folder}`;
    const trouble = { expected, got, todo: "free some space, or name another folder with --out" };
    if (free < fullBytes) return problem("disk space", trouble);
    return free < scarceBytes ? warning("disk space", trouble) : fine("disk space", expected, got);
  } catch (error) {
    return unchecked("disk space", expected, `the system does not tell (${codeOf(error)})`);
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
}
