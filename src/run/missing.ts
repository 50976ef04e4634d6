import { join } from "node:path";
import { jobFolder } from "../archive/disk/job-folder.js";
import type { Run } from "../core/ports/store.js";
import type { RunPorts } from "./ports.js";

/**
 * Before a run ends it looks whether the files that it saved are still there: a folder that was moved or emptied in the
 * meantime must not pass for an archive. Each file that is gone is fetched again, once, while its task is at hand.
 */
export class Saved {
  private readonly files: { item: number; number: number; file: string }[] = [];

  add(item: number, number: number, file: string): void {
    this.files.push({ item, number, file });
  }

  /** Puts items whose files are gone back to be fetched; returns how many files that were. */
  async fetchMissing(ports: RunPorts, run: Run): Promise<number> {
    let missing = 0;
    for (const { item, number, file } of this.files.splice(0)) {
      if (await ports.exists(join(jobFolder(run), file))) continue;
      const { state } = await ports.store.item(item);
      if (state !== "archived") continue;
      missing++;
      ports.log.warn({ file }, "a saved file is gone; it is fetched again");
      await ports.store.lost(item, number);
    }
    return missing;
  }
}
