import { constants } from "node:fs";
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  link as secondName,
  stat,
  statfs,
  unlink,
} from "node:fs/promises";
import { dirname } from "node:path";
import { inBatches } from "../../core/batches.js";
import { type ByteRange, type Disk, type NewFile, noFolderSync } from "../../core/ports/disk.js";

/**
 * The disk of this machine. Two traps: a file's content and its name become durable separately (a synced file in an
 * unsynced folder may be gone after a power cut), and Node's `rename` replaces an existing file, so a finished file gets
 * its name by `link`, which does not.
 */
export const nodeDisk: Disk = {
  makeFolder,
  create,
  append,
  link,
  unlink,
  syncFolder,
  size,
  realPath: (path) => realpath(path),
  list,
  read,
  freeBytes,
};

async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  // Each new folder is a new name in its parent, which needs a sync.
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

async function create(path: string): Promise<NewFile> {
  const handle = await open(path, "wx");
  let end = 0;
  return {
    async write(bytes) {
      await writeAll(handle, bytes, end);
      end += bytes.length;
    },
    async empty() {
      await handle.truncate(0);
      end = 0;
    },
    sync: () => handle.sync(),
    close: () => handle.close(),
  };
}

/** One call may write fewer bytes than requested. */
async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number | null): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const place = position === null ? null : position + at;
    const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, place);
    at += bytesWritten;
  }
}

async function append(path: string, text: string, mode = 0o666): Promise<void> {
  // A symbolic link under this name would lead the text elsewhere.
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
  const handle = await open(path, flags, mode);
  try {
    const { size: before } = await handle.stat();
    await writeAll(handle, Buffer.from(text), null);
    await handle.sync();
    if (before === 0) await syncFolder(dirname(path));
  } finally {
    await handle.close();
  }
}

/** The errors of `link` on filesystems without hard links (exFAT, some network and container mounts). */
const noHardLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

async function link(from: string, to: string): Promise<void> {
  try {
    await secondName(from, to);
  } catch (error) {
    if (!noHardLinks.has(codeOf(error))) throw error;
    await renameToFreeName(from, to);
  }
}

/** Creates the target exclusively first, so that the rename can only replace that empty file. */
export async function renameToFreeName(from: string, to: string): Promise<void> {
  await (await open(to, "wx")).close();
  try {
    await rename(from, to);
  } catch (error) {
    await unlink(to);
    throw error;
  }
}

/** The folders that are being synced, and how many callers wait. */
const syncing = new Map<string, { sync: () => Promise<void>; callers: number }>();

/** A sync in progress may have missed a name that was just made, so a caller waits for the next one. */
async function syncFolder(path: string): Promise<void> {
  const folder = syncing.get(path) ?? { sync: inBatches(() => syncNames(path)), callers: 0 };
  syncing.set(path, folder);
  folder.callers++;
  try {
    await folder.sync();
  } finally {
    if (--folder.callers === 0) syncing.delete(path);
  }
}

async function syncNames(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } catch (error) {
    if (!noFolderSync.has(codeOf(error))) throw error;
  } finally {
    await handle.close();
  }
}

/** A link in place of a file is not one of ours: it may lead to any file of the user's. A folder may be a link. */
async function size(path: string): Promise<number | null> {
  try {
    const facts = await lstat(path);
    if (!facts.isSymbolicLink()) return facts.size;
    const target = await stat(path);
    return target.isDirectory() ? target.size : null;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function list(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

const pieceBytes = 256 * 1024;

async function* read(path: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
  const end = range?.end ?? Number.POSITIVE_INFINITY;
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for (let at = range?.start ?? 0; at < end; ) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, end - at));
      const { bytesRead } = await handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0) return;
      yield piece.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await handle.close();
  }
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}
