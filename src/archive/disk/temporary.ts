import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import type { Disk, NewFile } from "../../core/ports/disk.js";
import { removeName } from "./names.js";

/** A file on its way into the archive. It lies in its final folder, because a link cannot cross filesystems. */
export interface Temporary {
  path: string;
  file: NewFile;
  /** Closes and removes the file, once. The caller syncs the folder; `removeLeftovers` removes what stayed. */
  discard(): Promise<void>;
  /** Discards the file and syncs the folder: a power cut after the end of the run would bring the name back. */
  abandon(): Promise<void>;
  /** Closes the file, which stays for another process; neither of the others removes it then. */
  release(): Promise<void>;
}

/** The names of files that a crashed run leaves. */
export const temporaryName = /^\.bulkgen-[0-9a-f]{16}-\d+\.part$/;

export function temporaryNameOf(identity: string, number: number): string {
  const short = createHash("sha256").update(identity).digest("hex").slice(0, 16);
  return `.bulkgen-${short}-${number}.part`;
}

/**
 * Opens a new temporary file for the output with that identity, never one of another process. Makes the folder if it is
 * missing.
 */
export async function openTemporary(disk: Disk, folder: string, identity: string): Promise<Temporary> {
  for (let number = 1; ; number++) {
    const path = join(folder, temporaryNameOf(identity, number));
    try {
      return openAs(disk, folder, path, await createIn(disk, folder, path));
    } catch (error) {
      if ((error as { code?: unknown }).code !== "EEXIST") throw error;
    }
  }
}

async function createIn(disk: Disk, folder: string, path: string): Promise<NewFile> {
  try {
    return await disk.create(path);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ENOENT") throw error;
    await disk.makeFolder(folder);
    return disk.create(path);
  }
}

function openAs(disk: Disk, folder: string, path: string, file: NewFile): Temporary {
  let discarded = false;
  const discard = async () => {
    if (discarded) return;
    discarded = true;
    await file.close().catch(() => undefined);
    await disk.unlink(path).catch(() => undefined);
  };
  return {
    path,
    file,
    discard,
    async release() {
      discarded = true;
      await file.close();
    },
    async abandon() {
      if (discarded) return;
      await discard();
      await disk.syncFolder(folder).catch(() => undefined);
    },
  };
}

/** Temporary files below a job's folder: absolute paths, in order. Symbolic links are not followed. */
export async function findLeftovers(disk: Disk, jobFolder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await disk.list(jobFolder)) {
    const path = join(jobFolder, entry);
    if (entry.endsWith("/")) found.push(...(await findLeftovers(disk, path)));
    else if (temporaryName.test(entry)) found.push(path);
  }
  return found.toSorted();
}

/**
 * Removes the temporary files of crashed runs and returns their paths. Call it while holding the workspace's lock and
 * before anything is fetched. A worker of a fleet may still have one, which it removes itself.
 */
export async function removeLeftovers(disk: Disk, jobFolder: string): Promise<string[]> {
  const found = await findLeftovers(disk, jobFolder);
  for (const path of found) await removeName(disk, path);
  for (const folder of new Set(found.map((path) => dirname(path)))) await disk.syncFolder(folder);
  return found;
}
