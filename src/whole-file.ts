import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * Files that are there as a whole or not at all. The only way in which a file of a folder is written anew: the folder may have
 * come from somebody else, with a link under the name that is about to be written. So the content goes to a file that is
 * created exclusively, which follows no link, and that then takes the name, whatever has it.
 */

/** How many names are tried for the new file: this process may write the same file several times at once. */
const triesMax = 100;

const bufferBytes = 1 << 20;

/** This machine in names: a process of another one has nothing to do with the number. */
const machine = createHash("sha256").update(hostname()).digest("hex").slice(0, 8);

/** The file beside `path` that a process of this machine writes: `out.zip.1f0c9a2e-4711.part`. */
export function partName(path: string, pid: number, number = 1): string {
  return `${path}.${machine}-${pid}${number === 1 ? "" : `-${number}`}.part`;
}

/** The name of the file that a part is written for; the name itself if it is no part. */
export function wholeName(path: string): string {
  return path.replace(/\.[0-9a-f]{8}-\d+(-\d+)?\.part$/, "");
}

/**
 * Removes what processes of this machine have left beside `path` when they were killed. The parts of processes that still run
 * stay, and so do those of other machines: whether they run cannot be seen from here.
 */
function removeAbandoned(path: string): void {
  try {
    const start = `${basename(path)}.${machine}-`;
    for (const name of readdirSync(dirname(path))) {
      const pid = name.startsWith(start)
        ? /^(\d+)(-\d+)?\.part$/.exec(name.slice(start.length))?.[1]
        : undefined;
      if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(dirname(path), name), { force: true });
    }
  } catch {
    // Leftovers are no reason to write nothing; a folder that is missing is reported when the file is created.
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** Creates the file beside `path` that will take its name. Rejects with the system's error. */
async function createPart(path: string): Promise<{ part: string; handle: FileHandle }> {
  removeAbandoned(path);
  for (let number = 1; ; number++) {
    const part = partName(path, process.pid, number);
    try {
      return { part, handle: await open(part, "wx") };
    } catch (error) {
      if (!isTaken(error) || number === triesMax) throw error;
    }
  }
}

function isTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EEXIST";
}

/**
 * Writes a file with these pieces. Rejects with the system's error, or that of the pieces; then nothing is left.
 */
export async function writeWhole(
  path: string,
  pieces: string | Uint8Array | Iterable<string> | AsyncIterable<string | Uint8Array>,
  signal?: AbortSignal,
): Promise<void> {
  const { part, handle } = await createPart(path);
  try {
    const source = typeof pieces === "string" || pieces instanceof Uint8Array ? [pieces] : pieces;
    // Pieces that come while others are written are written together. The stream closes the file.
    const target = handle.createWriteStream({ flush: true, highWaterMark: bufferBytes });
    await pipeline(Readable.from(source), target, signal ? { signal } : {});
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** Writes a file as a whole and synchronously. Throws the system's error. */
export function writeWholeNow(path: string, text: string, mode = 0o666): void {
  const part = writePartNow(path, text, mode);
  try {
    renameSync(part, path);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

/** Makes a file as a whole and synchronously, unless there is one: of two processes, one succeeds. Throws the system's error. */
export function makeWholeNow(path: string, text: string, mode = 0o666): void {
  const part = writePartNow(path, text, mode);
  try {
    linkSync(part, path);
  } catch {
    if (existsSync(path)) return;
    // The file system has no hard links.
    copyFileSync(part, path, constants.COPYFILE_EXCL);
  } finally {
    rmSync(part, { force: true });
  }
}

/**
 * Makes a folder with all above it. Returns the first that was made; undefined if it was there. Throws the system's error: on a
 * read-only file system Node says ENOENT, as if a folder were missing; without `recursive` it says EROFS.
 */
export function makeFolders(path: string, mode = 0o777): string | undefined {
  try {
    return mkdirSync(path, { recursive: true, mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    let missing = path;
    while (!existsSync(dirname(missing))) missing = dirname(missing);
    mkdirSync(missing, { mode });
    mkdirSync(path, { recursive: true, mode });
    return missing;
  }
}

/** Writes a file beside `path` that is to take its name, and returns its name. */
function writePartNow(path: string, text: string, mode: number): string {
  removeAbandoned(path);
  for (let number = 1; ; number++) {
    const part = partName(path, process.pid, number);
    let descriptor: number;
    try {
      descriptor = openSync(part, "wx", mode);
    } catch (error) {
      if (!isTaken(error) || number === triesMax) throw error;
      continue;
    }
    try {
      try {
        writeFileSync(descriptor, text);
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
      return part;
    } catch (error) {
      rmSync(part, { force: true });
      // The system does not name the file in the error of a write.
      throw Object.assign(error as Error, { path });
    }
  }
}
