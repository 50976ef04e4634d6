import { createCipheriv } from "node:crypto";
import type { Disk } from "../../core/ports/disk.js";

/**
 * Disk space for answers (P17). If the disk fills up between a paid request and its answer, the task's id could not be
 * written. So a file of random text takes up space before anything is bought, and is removed when an answer needs the
 * space: for its receipt and for what the database writes, for all lanes at once.
 */
const reserveBytes = 1024 * 1024;

export class Reserve {
  private isTaken = false;

  constructor(
    private readonly disk: Disk,
    private readonly path: string,
  ) {}

  /** Takes up the space, unless it is taken already. Rejects with errors of the disk. */
  async take(): Promise<void> {
    if (this.isTaken) return;
    const bytes = await this.disk.size(this.path);
    if (bytes !== null && bytes !== reserveBytes) await this.disk.unlink(this.path);
    if (bytes !== reserveBytes) await this.disk.append(this.path, filling());
    this.isTaken = true;
  }

  /** The folder was removed, so the space must be taken again. */
  lost(): void {
    this.isTaken = false;
  }

  /** Frees the space. False when there is none to free. */
  async give(): Promise<boolean> {
    if (!this.isTaken) return false;
    this.isTaken = false;
    return this.disk.unlink(this.path).then(
      () => true,
      () => false,
    );
  }
}

let filled: string | undefined;

/** Text that no file system can compress. A process with many runs makes it once. */
function filling(): string {
  filled ??= noise();
  return filled;
}

function noise(): string {
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16), Buffer.alloc(16));
  return cipher.update(Buffer.alloc((reserveBytes * 3) / 4)).toString("base64");
}
