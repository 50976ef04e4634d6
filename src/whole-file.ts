import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * Files that are there as a whole or not at all. The only way in which a file of a folder is written anew: the folder may have
 * come from somebody else, with a link under the name that is about to be written. So the content goes to a file that is
 * created exclusively, which follows no link, and that then takes the name, whatever has it.
 */

/** How many names are tried for the new file. A person's own file may have one of them. */
const triesMax = 100;

const bufferBytes = 1 << 20;

function partName(path: string, number: number): string {
  return number === 1 ? `${path}.part` : `${path}.${number}.part`;
}

/** Creates the file beside `path` that will take its name. Rejects with the system's error. */
async function createPart(path: string): Promise<{ part: string; handle: FileHandle }> {
  for (let number = 1; ; number++) {
    const part = partName(path, number);
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
  for (let number = 1; ; number++) {
    const part = partName(path, number);
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
      renameSync(part, path);
      return;
    } catch (error) {
      rmSync(part, { force: true });
      throw error;
    }
  }
}
