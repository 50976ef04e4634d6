import { existsSync, mkdtempSync, realpathSync, rmdirSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { type Check, fine, problem, unchecked, warning } from "../report/doctor.js";

/** Free bytes below which the next films may not fit, and below which a run stops at once. */
const scarceBytes = 2_000_000_000;
const fullBytes = 50_000_000;

/** File systems on which the locks of one machine may not be seen by another, or a synced copy may be torn. */
const remoteTypes = /^(nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|vboxsf|davfs\d?|fuse\..*)$/;

/** Local all the same, although they come through FUSE. */
const localFuse = new Set(["fuse.fuseblk", "fuse.ntfs-3g", "fuse.mergerfs", "fuse.ext4"]);

/** Folders that a program copies to other machines, by the names that it gives them. */
const synced: readonly (readonly [RegExp, string])[] = [
  [/^dropbox( \(.*\))?$/i, "Dropbox"],
  [/^onedrive( - .*|-.*)?$/i, "OneDrive"],
  [/^(icloud ?drive|com~apple~clouddocs|mobile documents)$/i, "iCloud"],
  [/^(google ?drive|googledrive-.*)$/i, "Google Drive"],
  [/^(nextcloud|owncloud|pcloud ?drive|box sync|syncthing|sync)$/i, "a synced folder"],
];

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

/** Whether the state lies where a database and its locks can be trusted. */
export function stateFileSystem(folder: string, mounts: string | null): Check {
  const expected = "a local disk that no program syncs";
  const path = realpathSync(nearest(folder));
  const owner = syncedBy(path);
  const type = mounts === null ? null : fileSystemOf(path, mounts);
  const remote = type !== null && remoteTypes.test(type) && !localFuse.has(type);
  if (!owner && !remote) {
    return type === null
      ? unchecked("file system", expected, `${path}: this system does not tell; no synced folder by its name`)
      : fine("file system", expected, `${type} at ${path}`);
  }
  return warning("file system", {
    expected,
    got: `${path} on ${owner ?? type}`,
    todo: "keep the workspace on a local disk and name it with --workspace; --out may stay where it is",
  });
}

/** The type of the file system that a path lies on: of the longest mount point above it, and of the last one there. */
export function fileSystemOf(path: string, mounts: string): string | null {
  let found: { point: string; type: string } | null = null;
  for (const line of mounts.split("\n")) {
    const [, written = "", type = ""] = line.split(" ");
    // Blanks in a mount point are written as octal numbers.
    const point = written.replace(/\\([0-7]{3})/g, (_, octal) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    if (point === "" || !isAtOrBelow(path, point)) continue;
    if (found === null || point.length >= found.point.length) found = { point, type };
  }
  return found?.type ?? null;
}

/** Which program copies the folder to other machines, going by the names on its path. */
export function syncedBy(path: string): string | null {
  for (const name of path.split(sep)) {
    const known = synced.find(([pattern]) => pattern.test(name));
    if (known) return known[1];
  }
  return null;
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

/** The folder itself, or the nearest above it that exists. */
function nearest(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearest(dirname(folder));
}

function isAtOrBelow(path: string, point: string): boolean {
  return path === point || path.startsWith(point.endsWith("/") ? point : `${point}/`);
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
}
