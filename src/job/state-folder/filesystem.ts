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

/** Linux's file system numbers, used if the mount table cannot be read. */
const remoteNumbers: ReadonlyMap<number, string> = new Map([
  [0x6969, "nfs"],
  [0x517b, "smb"],
  [0xff534d42, "cifs"],
  [0xfe534d42, "smb2"],
  [0x01021997, "9p"],
  [0x5346414f, "afs"],
  [0x00c36400, "ceph"],
  [0x73757245, "coda"],
  [0x0bd00bd0, "lustre"],
  [0x786f4256, "vboxsf"],
  [0x65735546, "fuse"],
]);

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

/** What the system reports about its file systems. */
export interface Filesystem {
  /** The mount table in Linux's format; null if there is none. */
  mounts: string | null;
  /** The file system number from statfs; asked only without a mount table. */
  fileSystemNumber(folder: string): number | null;
}

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

export function filesystemInfo(folder: string, ground: Filesystem): FilesystemInfo {
  const path = realpathSync(nearest(folder));
  const type = ground.mounts === null ? null : fileSystemOf(path, ground.mounts);
  const number = ground.mounts === null ? ground.fileSystemNumber(path) : null;
  const remote = type === null ? (remoteNumbers.get(number ?? 0) ?? null) : isRemote(type) ? type : null;
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

/** What is wrong with the locks of a folder; null if a taken lock is refused and a free one is granted. */
export type LockTrouble = string | null;

/** Tests that a second connection of this process is refused a taken lock. Takes a few milliseconds. */
export function tryLock(folder: string): LockTrouble {
  return trial(folder, (path) => {
    const second = takeLock(path);
    second?.release();
    return second ? "it was granted twice" : null;
  });
}

/** Tests that another process is refused it too: without real locks only the same process is refused. */
export function tryLockElsewhere(folder: string): LockTrouble {
  return trial(folder, (path, release) => {
    const during = elsewhere(path);
    release();
    const after = elsewhere(path);
    if (during === refused && after === given) return null;
    return during === given ? "it was granted to both" : `the test failed (${during}, ${after})`;
  });
}

const given = 40;
const refused = 41;

/** Uses a folder of its own, so that tests of several processes do not interfere. Leaves nothing behind. */
function trial(folder: string, use: (path: string, release: () => void) => LockTrouble): LockTrouble {
  const scratch = mkdtempSync(join(folder, ".bulkgen-trial-"));
  const path = join(scratch, "trial.lock");
  try {
    const first = takeLock(path);
    if (!first) return "a free lock was refused";
    try {
      return use(path, () => first.release());
    } finally {
      first.release();
    }
  } catch (error) {
    return (error as Error).message;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function elsewhere(path: string): number | null {
  const module = pathToFileURL(packageFile("dist/store/lock.js")).href;
  const script = `const { takeLock } = await import(process.argv[1]); process.exitCode = takeLock(process.argv[2]) ? ${given} : ${refused};`;
  const flags = ["--input-type=module", "-e", script, module, path];
  return spawnSync(process.execPath, flags, { timeout: 20_000 }).status;
}
