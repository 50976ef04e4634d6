import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { packageFile } from "../../package-file.js";
import { takeLock } from "../../store/lock.js";

/**
 * The ground that a folder lies on. A database wants a local disk: on network file systems locks may be unseen by other
 * machines, and a program that syncs a folder copies a database in the middle of a change.
 */

/** By the names that mount tables give them, on Linux and on macOS. */
const remoteTypes =
  /^(nfs\d?|cifs|smb\w*|9p|afs|afpfs|ceph|coda|glusterfs|lustre|beegfs|vboxsf|webdav|davfs\d?|macfuse|osxfuse|fuse\..*)$/;

/** Local all the same, although they come through FUSE. */
const localFuse = new Set(["fuse.fuseblk", "fuse.ntfs-3g", "fuse.mergerfs", "fuse.ext4"]);

/** On these, locks are the kernel's own and need no trial. */
const knownLocal = /^(ext[234]|xfs|btrfs|zfs|f2fs|apfs|hfs|ufs|tmpfs|overlay|bcachefs)$/;

/** Linux's own numbers, for where there is no mount table to read. */
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

/** Folders that a program copies to other machines, by the names that it gives them. */
const syncedNames: readonly (readonly [RegExp, string])[] = [
  [/^dropbox( \(.*\))?$/i, "Dropbox"],
  [/^onedrive( - .*|-.*)?$/i, "OneDrive"],
  [/^(icloud ?drive|com~apple~clouddocs|mobile documents)$/i, "iCloud"],
  [/^(google ?drive|googledrive-.*)$/i, "Google Drive"],
  [/^nextcloud$/i, "Nextcloud"],
  [/^syncthing$/i, "Syncthing"],
  [/^(owncloud|pcloud ?drive|box sync|sync)$/i, "a synced folder"],
];

/** What such programs leave in the folders that they sync. */
const syncMarkers: readonly (readonly [string, string])[] = [
  [".dropbox", "Dropbox"],
  [".849C9593-D756-4E56-8D6E-42412F2A707B", "OneDrive"],
  [".tmp.drivedownload", "Google Drive"],
  [".stfolder", "Syncthing"],
  [".nextcloudsync.log", "Nextcloud"],
  [".owncloudsync.log", "ownCloud"],
];

/** What the system tells of its file systems. */
export interface Filesystem {
  /** The mount table as Linux writes it, or null where there is none. */
  mounts: string | null;
  /** The number that statfs gives a folder's file system; asked only without a mount table. */
  fileSystemNumber(folder: string): number | null;
}

export interface FilesystemInfo {
  /** The nearest folder that exists, by its real name. */
  path: string;
  /** Name of the file system; null where the system does not tell. */
  type: string | null;
  /** Why no database should lie here, such as `nfs4` or `Dropbox`; null where it may. */
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

/** The type of the file system that a path lies on: of the longest mount point above it, and of the last one there. */
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
  // Blanks in a mount point are written as octal numbers.
  const blank = (_: string, octal: string) => String.fromCharCode(Number.parseInt(octal, 8));
  return { point: written.replace(/\\([0-7]{3})/g, blank), type: name };
}

/** Which program copies the folder to other machines, going by the names on its path and by what it leaves there. */
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

/** The folder itself, or the nearest above it that exists. */
export function nearest(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearest(dirname(folder));
}

function isAtOrBelow(path: string, point: string): boolean {
  return path === point || path.startsWith(point.endsWith("/") ? point : `${point}/`);
}

/** What is wrong with the locks of a folder; null where one that is held is refused, and one that is free is given. */
export type LockTrouble = string | null;

/** Whether a second connection of this process is refused the lock of the first. Takes a few milliseconds. */
export function tryLock(folder: string): LockTrouble {
  return trial(folder, (path) => {
    const second = takeLock(path);
    second?.release();
    return second ? "it was given twice" : null;
  });
}

/** Whether another process is refused it too: a file system without real locks refuses nothing to anybody else. */
export function tryLockElsewhere(folder: string): LockTrouble {
  return trial(folder, (path, release) => {
    const during = elsewhere(path);
    release();
    const after = elsewhere(path);
    if (during === refused && after === given) return null;
    return during === given ? "it was given too" : `the trial failed (${during}, ${after})`;
  });
}

const given = 40;
const refused = 41;

/** In a folder of its own, so that trials of several processes do not meet. Leaves nothing behind. */
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
