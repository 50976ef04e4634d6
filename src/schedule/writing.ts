import type { Log } from "../core/ports/log.js";
import { refusedByDisk } from "../store/open.js";
import type { Schedule } from "../store/schedules.js";
import type { DaemonNotice } from "./daemon.js";
import { localText } from "./zone.js";

/**
 * What the daemon writes of nights. A full or read-only disk does not end it: nothing begins that could not be written
 * down, people are told once for each night, and it is tried again until the disk takes it.
 */
export class Writing {
  /** Nights of which the disk takes no word, and what is said of them. */
  private readonly refused = new Map<string, string>();

  constructor(
    private readonly log: Log,
    private readonly notify: (schedule: Schedule, notice: DaemonNotice) => void,
  ) {}

  /** One line for people; null while all is well. */
  get trouble(): string | null {
    const [message = null] = this.refused.values();
    return message;
  }

  /** Whether it was written. Rejects with what is no matter of the disk. */
  async write(
    schedule: Pick<Schedule, "name"> | Schedule,
    dueAt: number,
    work: () => Promise<void>,
  ): Promise<boolean> {
    const night = `${schedule.name} ${dueAt}`;
    try {
      await work();
    } catch (error) {
      if (!refusedByDisk(error)) throw error;
      if (!this.refused.has(night)) this.tell(schedule, dueAt, night, error);
      return false;
    }
    if (this.refused.delete(night) && this.refused.size === 0)
      this.log.info({}, "the disk takes what is written again");
    return true;
  }

  private tell(
    schedule: Pick<Schedule, "name"> | Schedule,
    dueAt: number,
    night: string,
    error: Error,
  ): void {
    const due = "zone" in schedule ? localText(dueAt, schedule.zone) : new Date(dueAt).toISOString();
    const message = `${schedule.name}: the night of ${due} cannot be written down (${error.message}); it is tried again until the disk takes it`;
    this.refused.set(night, message);
    this.log.error({ schedule: schedule.name }, message);
    // A schedule that was removed meanwhile tells nobody.
    if ("zone" in schedule) this.notify(schedule, { event: "trouble", dueAt, message });
  }
}
