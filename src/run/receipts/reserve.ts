import { createCipheriv } from "node:crypto";
import type { Disk } from "../../core/ports/disk.js";

/**
 * Room for answers (P17). A disk that has filled between a paid request and its answer would have the task's id nowhere
 * to go. So a file of no meaning takes up room before anything is bought, and is given up when an answer needs it: for
 * its receipt and for what the database writes of it meanwhile, of every lane at once.
 */
const reserveBytes = 1024 * 1024;

export class Reserve {
  private isTaken = false;

  constructor(
    private readonly disk: Disk,
    private readonly path: string,
  ) {}

  /** Sees to it that the room is taken up. Rejects with errors of the disk. */
  async take(): Promise<void> {
    if (this.isTaken) return;
    const bytes = await this.disk.size(this.path);
    if (bytes !== null && bytes !== reserveBytes) await this.disk.unlink(this.path);
    if (bytes !== reserveBytes) await this.disk.append(this.path, filling());
    this.isTaken = true;
  }

  /** Somebody took its folder away: it has to be taken anew. */
  lost(): void {
    this.isTaken = false;
  }

  /** Gives the room back to the disk. False when there is none to give. */
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

/** Text that no file system makes smaller. A process with many runs makes it once. */
function filling(): string {
  filled ??= noise();
  return filled;
}

function noise(): string {
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16), Buffer.alloc(16));
  return cipher.update(Buffer.alloc((reserveBytes * 3) / 4)).toString("base64");
}
