import type { DiskRefusal } from "../archive/disk/room.js";
import type { RunPorts } from "./ports.js";
import { Wait } from "./waits.js";

/** Milliseconds between two tries of a disk that refuses; so old may be, too, what is known of its room when something is bought. */
export const diskMs = 15_000;

/**
 * What the archive's disk refuses, while it does: nothing is bought that could not be kept. Saves tell of it, but the
 * first one comes when the first task is finished, and by then all may be bought. So before, the room is looked at.
 */
export class DiskTrouble {
  private ofSave: DiskRefusal | null = null;
  private ofLook: DiskRefusal | null = null;
  private nextLook: Wait;

  /** `folder` is the job's. */
  constructor(
    private readonly ports: Pick<RunPorts, "refusal" | "clock" | "log">,
    private readonly folder: string,
  ) {
    this.nextLook = new Wait(ports.clock, 0);
  }

  /** The last thing that was refused; null where the disk takes everything. */
  get reason(): string | null {
    return (this.ofSave ?? this.ofLook)?.reason ?? null;
  }

  /** When the room is looked at again (UTC ms); null where nothing waits for that. */
  get wakeAt(): number | null {
    return this.ofLook === null ? null : this.nextLook.until;
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

  /** DuePolls at the room when it is time to and something is to be bought; what it found to be full, until it is not. */
  async look(buys: boolean): Promise<void> {
    if (!(buys || this.ofLook !== null) || !this.nextLook.isOver) return;
    const refusal = await this.ports.refusal(this.folder);
    if (refusal !== null) this.tell(refusal);
    this.ofLook = refusal;
    this.nextLook = new Wait(this.ports.clock, diskMs);
  }

  /** Once, when it begins. */
  private tell({ code, reason }: DiskRefusal): void {
    if (this.reason !== null) return;
    this.ports.log.warn({ code }, `the archive cannot be written (${reason}); waiting`);
  }
}
