import type { DiskRefusal } from "../../archive/disk/space.js";
import type { ServiceClock, Wait } from "../../client/service-clock.js";
import { type Reason, reasonFor } from "../../core/reason.js";
import type { GatePorts } from "./ports.js";

/**
 * Milliseconds between two tries of a disk that refuses writes, and between two checks of its free space while items
 * are bought.
 */
export const diskMs = 15_000;

/**
 * A nearly full disk accepts small files and refuses large ones by turns: refusals are not logged again for this long
 * (ms).
 */
const quietMs = 10 * 60_000;

/**
 * While the archive's disk refuses files, nothing is bought, because it could not be saved. A save shows the trouble, but
 * the first save comes when the first task is finished, and by then everything may be bought. So the free space is
 * checked before buying.
 */
export class DiskTrouble {
  private ofSave: DiskRefusal | null = null;
  private ofCheck: DiskRefusal | null = null;
  private nextCheck: Wait;
  private quiet: Wait;

  /** `folder` is the job's. */
  constructor(
    private readonly ports: Pick<GatePorts, "refusal" | "log">,
    private readonly time: ServiceClock,
    private readonly folder: string,
  ) {
    this.nextCheck = time.wait(0);
    this.quiet = time.wait(0);
  }

  /** Why the disk refuses files; null if it accepts all files. */
  get reason(): string | null {
    return (this.ofSave ?? this.ofCheck)?.reason ?? null;
  }

  /** Why nothing is bought; null if the disk accepts all files. */
  get against(): Reason | null {
    const { reason, wakeAt } = this;
    if (reason === null) return null;
    return reasonFor("disk", reason, wakeAt);
  }

  /** When the free space is checked again (UTC ms); null if nothing waits for that. */
  get wakeAt(): number | null {
    return this.ofCheck === null ? null : this.nextCheck.until;
  }

  /** A save was refused. */
  refused(refusal: DiskRefusal): void {
    this.tell(refusal);
    this.ofSave = refusal;
  }

  /** No save is refused any more. */
  over(): void {
    this.ofSave = null;
  }

  /** Checks the free space when a check is due and something is to be bought, or while the disk is full. */
  async check(buys: boolean): Promise<void> {
    if (!(buys || this.ofCheck !== null) || !this.nextCheck.isOver) return;
    const refusal = await this.ports.refusal(this.folder);
    if (refusal !== null) this.tell(refusal);
    this.ofCheck = refusal;
    this.nextCheck = this.time.wait(diskMs);
  }

  /** Logs the trouble once, when it begins. */
  private tell({ code, reason }: DiskRefusal): void {
    if (this.reason !== null || (code === "ENOSPC" && !this.quiet.isOver)) return;
    if (code === "ENOSPC") this.quiet = this.time.wait(quietMs);
    const todo =
      code === "ENOSPC" ? "Free some space and the run continues" : "The run continues when it accepts files";
    const what = code === "BUCKET" ? "the bucket" : "the disk";
    this.ports.log.warn({ code }, `${what} refuses files: ${reason}. Waiting; nothing is bought. ${todo}.`);
  }
}

/** Milliseconds until receipts that could not be written are tried again. */
const receiptsMs = 15_000;

/** The disk of the workspace refuses the receipts. Without receipts nothing is bought; they are tried again and again. */
export class ReceiptsTrouble {
  private retry: Wait | null = null;
  private error: Error | null = null;

  constructor(
    private readonly log: GatePorts["log"],
    private readonly time: ServiceClock,
  ) {}

  get reason(): string | null {
    return this.error === null ? null : `the receipts cannot be written (${this.error.message})`;
  }

  /** Why nothing is bought until it is time for another try. */
  get against(): Reason | null {
    const { error, retry } = this;
    if (error === null || retry === null || retry.isOver) return null;
    return reasonFor("receipts", error.message, retry.until);
  }

  /** When they are tried again (UTC ms); null while they can be written. */
  get wakeAt(): number | null {
    return this.retry?.until ?? null;
  }

  /** A receipt was written, or could not be. */
  written(error: Error | null): void {
    if (error !== null && this.error === null) {
      this.log.warn(
        { error: error.message },
        "the receipts cannot be written; nothing is submitted until they can be",
      );
    }
    this.error = error;
    this.retry = error === null ? null : this.time.wait(receiptsMs);
  }
}
