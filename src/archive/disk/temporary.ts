import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Disk, NewFile } from "../../core/ports/disk.js";

/** A file on its way into the archive, in the folder that it will stay in: a link cannot cross file systems. */
export interface Temporary {
  path: string;
  file: NewFile;
  /**
   * Closes it and removes its name, unless that is done; what cannot be removed is left to `leftovers`. The caller syncs
   * the folder.
   */
  discard(): Promise<void>;
  /** The same for good: a power cut would bring the name back, and a run that has ended does not come back for it. */
  abandon(): Promise<void>;
}

/** What a run that died leaves behind. */
export const temporaryName = /^\.bulkgen-[0-9a-f]{16}-\d+\.part$/;

/** Opens a temporary file for the output with that identity; never one that another process may be writing. */
export async function openTemporary(disk: Disk, folder: string, identity: string): Promise<Temporary> {
  const short = createHash("sha256").update(identity).digest("hex").slice(0, 16);
  for (let number = 1; ; number++) {
    const path = join(folder, `.bulkgen-${short}-${number}.part`);
    try {
      return openAs(disk, folder, path, await disk.create(path));
    } catch (error) {
      if ((error as { code?: unknown }).code !== "EEXIST") throw error;
    }
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
    async abandon() {
      if (discarded) return;
      await discard();
      await disk.syncFolder(folder).catch(() => undefined);
    },
  };
}
