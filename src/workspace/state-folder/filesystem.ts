import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { packageFile } from "../../package-file.js";
import { takeLock } from "../../store/lock.js";

/**
 * The file system of a folder. A database needs a local disk: on network file systems, other machines may not see its
 * locks, and a program that syncs a folder may copy a database in the middle of a change.
 */

/** By their names in the mount tables of Linux and macOS. */
const remoteTypes =
  /^(nfs\d?|cifs|smb\w*|9p|afs|afpfs|ceph|coda|glusterfs|lustre|beegfs|vboxsf|webdav|davfs\d?|macfuse|osxfuse|fuse\..*)$/;

/** Local file systems that use FUSE. */
const localFuse = new Set(["fuse.fuseblk", "fuse.ntfs-3g", "fuse.mergerfs", "fuse.ext4"]);

/** The kernel implements their locks, so they need no test. */
const knownLocal = /^(ext[234]|xfs|btrfs|zfs|f2fs|apfs|hfs|ufs|tmpfs|overlay|bcachefs)$/;

/** Names of folders that a program copies to other machines. */
const syncedNames: readonly (readonly [RegExp, string])[] = [
  [/^dropbox( \(.*\))?$/i, "Dropbox"],
  [/^onedrive( - .*|-.*)?$/i, "OneDrive"],
  [/^(icloud ?drive|com~apple~clouddocs|mobile documents)$/i, "iCloud"],
  [/^(google ?drive|googledrive-.*)$/i, "Google Drive"],
  [/^nextcloud$/i, "Nextcloud"],
  [/^syncthing$/i, "Syncthing"],
  [/^(owncloud|pcloud ?drive|box sync|sync)$/i, "a synced folder"],
];

/** Files that sync programs leave in their folders. */
const syncMarkers: readonly (readonly [string, string])[] = [
  [".dropbox", "Dropbox"],
  [".849C9593-D756-4E56-8D6E-42412F2A707B", "OneDrive"],
  [".tmp.drivedownload", "Google Drive"],
  [".stfolder", "Syncthing"],
  [".nextcloudsync.log", "Nextcloud"],
  [".owncloudsync.log", "ownCloud"],
];

export interface FilesystemInfo {
  /** The real path of the nearest existing folder. */
  path: string;
  /** Name of the file system; null if the system does not report it. */
  type: string | null;
  /** Why no database should be kept here, e.g. `nfs4` or `Dropbox`; null if it may. */
  trouble: string | null;
  /** Its locks are known to work. */
  known: boolean;
}

/** `mounts` is the system's mount table; null if there is none. */
export function filesystemInfo(folder: string, mounts: string | null): FilesystemInfo {
  const path = realpathSync(nearest(folder));
  const type = mounts === null ? null : fileSystemOf(path, mounts);
  const remote = type !== null && isRemote(type) ? type : null;
  return {
    path,
    type,
    trouble: syncedBy(path) ?? remote,
    known: type !== null && knownLocal.test(type),
  };
}

function isRemote(type: string): boolean {
  return remoteTypes.test(type) && !localFuse.has(type);
}

/** The type of a path's file system: the longest mount point above it, and the last mount there. */
export function fileSystemOf(path: string, mounts: string): string | null {
  let found: { point: string; type: string } | null = null;
  for (const line of mounts.split("\n")) {
    const { point, type } = mountOf(line);
    if (point === "" || !isAtOrBelow(path, point)) continue;
    if (found === null || point.length >= found.point.length) found = { point, type };
  }
  return found?.type ?? null;
}

/** A line of Linux's table, or one of macOS's: `//ada@nas/share on /Volumes/share (smbfs, nodev)`. */
function mountOf(line: string): { point: string; type: string } {
  const [, point, type] = /^.+? on (.+) \(([^,)]+)/.exec(line) ?? [];
  if (point !== undefined && type !== undefined) return { point, type };
  const [, written = "", name = ""] = line.split(" ");
  // Mount tables write spaces as octal numbers.
  const blank = (_: string, octal: string) => String.fromCharCode(Number.parseInt(octal, 8));
  return { point: written.replace(/\\([0-7]{3})/g, blank), type: name };
}

/** Which program syncs the folder, judged by the names on its path and by the files in it. */
export function syncedBy(path: string): string | null {
  for (const name of path.split(sep)) {
    const known = syncedNames.find(([pattern]) => pattern.test(name));
    if (known) return known[1];
  }
  for (let folder = path; dirname(folder) !== folder; folder = dirname(folder)) {
    const known = syncMarkers.find(([marker]) => existsSync(join(folder, marker)));
    if (known) return known[1];
  }
  return null;
}

/** The folder itself, or its nearest existing parent. */
export function nearest(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearest(dirname(folder));
}

function isAtOrBelow(path: string, point: string): boolean {
  return path === point || path.startsWith(point.endsWith("/") ? point : `${point}/`);
}

/**
 * What is wrong with the locks of a folder; null if a taken lock is refused and a free one is granted. Another process
 * tries it: without real locks only the same process is refused.
 */
export function tryLock(folder: string): string | null {
  // A folder of its own keeps the tests of several processes apart.
  const scratch = mkdtempSync(join(folder, ".bulkgen-trial-"));
  const path = join(scratch, "trial.lock");
  try {
    const first = takeLock(path);
    if (!first) return "a free lock was refused";
    const during = elsewhere(path);
    first.release();
    const after = elsewhere(path);
    if (during === refused && after === given) return null;
    return during === given ? "it was granted to both" : `the test failed (${during}, ${after})`;
  } catch (error) {
    return (error as Error).message;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const given = 40;
const refused = 41;

function elsewhere(path: string): number | null {
  const module = pathToFileURL(packageFile("dist/store/lock.js")).href;
  const script = `const { takeLock } = await import(process.argv[1]); process.exitCode = takeLock(process.argv[2]) ? ${given} : ${refused};`;
  const flags = ["--input-type=module", "-e", script, module, path];
  return spawnSync(process.execPath, flags, { timeout: 20_000 }).status;
}
