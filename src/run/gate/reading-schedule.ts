import { isPause, ServiceError } from "../../client/service.js";
import type { Wait } from "../../client/service-clock.js";
import { dayMs, freeSlots, nextSendAt } from "../../core/quota/quota.js";
import type { GatePorts } from "./ports.js";

/** Milliseconds until the next check whether a reading can be taken: the last POST of another process, or a pause, has ended. */
const busyMs = 1_000;
/** Milliseconds until counters that could not be read are tried again: doubling, because each try costs requests. */
const retryMs = 30_000;
const retryMsMax = 60 * 60_000;
/** A reading that is due this much later (ms) than any reading can be was set before the clock was set back. */
const skewMs = 60_000;
/** Milliseconds until a reading whose time was set before the clock was set back. */
const resetMs = 600_000;

/** Readings in a row that failed: for how long (ms), how many, and why the last one failed. */
interface Unread {
  lasts: () => number;
  failures: number;
  error: unknown;
}

/**
 * When the key's counters are read to settle unknown outcomes. A judgement plans the next reading. When its time has come,
 * the reading may still have to wait: for a slot of the quota, for the requests of other processes, or after a failure.
 */
export class ReadingSchedule {
  /** Until the counters are to be read next; null when no reading could prove anything. */
  private planned: Wait | null = null;
  /** Until a reading that is due and could not be taken is tried again. */
  private retry: Wait | null = null;
  /** Until the quota has a slot for a reading that is due. */
  private slot: Wait | null = null;
  /** The latest readings, if they failed. */
  private unread: Unread | null = null;

  /** `settleMs`: the times (ms) after the end of an unanswered request at which readings are taken. */
  constructor(
    private readonly ports: Pick<GatePorts, "accounts" | "accountId" | "clock" | "service">,
    private readonly settleMs: readonly number[],
  ) {}

  /** Whether the time of a reading has come, even if the reading cannot be taken now. */
  get isNeeded(): boolean {
    return this.planned?.isOver === true;
  }

  /** Whether a reading is to be tried now. */
  get isDue(): boolean {
    return this.isNeeded && this.retry?.isOver !== false;
  }

  /** When the counters are to be read next (UTC ms); null when no reading could prove anything. */
  get nextAt(): number | null {
    return this.planned === null ? null : Math.max(this.planned.until, this.retry?.until ?? 0);
  }

  /** When the next reading is due and the quota has a slot for it (UTC ms); null if no reading is planned. */
  get wakeAt(): number | null {
    const { nextAt } = this;
    return nextAt === null ? null : Math.max(nextAt, this.slot?.until ?? 0);
  }

  /** For how long the counters could not be read (ms), in how many readings, and why; null while they can. */
  get trouble(): { ms: number; failures: number; error: unknown } | null {
    if (this.unread === null) return null;
    const { lasts, failures, error } = this.unread;
    return { ms: lasts(), failures, error };
  }

  /** Plans a reading for now. */
  planNow(): void {
    this.planned = this.time.wait(0);
  }

  /** Plans a reading (UTC ms; null for none). */
  plan(at: number | null): void {
    const ms = (at ?? 0) - this.ports.clock.now();
    // No reading is planned further ahead, so this time was computed before the clock was set back.
    const msMax = Math.max(dayMs, ...this.settleMs) + skewMs;
    this.planned = at === null ? null : this.time.wait(ms > msMax ? resetMs : ms);
    if (!this.isNeeded) this.unread = null;
  }

  /** Whether the quota has a slot for a reading now. */
  async hasSlot(): Promise<boolean> {
    const { accounts, accountId, clock } = this.ports;
    const quota = await accounts.quota(accountId);
    const now = clock.now();
    const isFree = freeSlots(quota, now) >= 1;
    this.slot = isFree ? null : this.time.wait(nextSendAt(quota, now) - now);
    return isFree;
  }

  /** The counters were read. */
  succeeded(): void {
    this.unread = null;
    this.retry = null;
  }

  /** A POST of the key was in flight in another process, so the counters would have proved nothing and were not read. */
  wasBusy(): void {
    this.retry = this.time.wait(busyMs);
  }

  /** The counters could not be read. */
  failed(error: unknown): void {
    const { lasts, failures } = this.unread ?? { lasts: this.time.stopwatch(), failures: 0 };
    this.unread = { lasts, failures: failures + 1, error };
    // A pause that the service asks for is over when there is a slot again.
    const isPaused = error instanceof ServiceError && isPause(error);
    this.retry = this.time.wait(isPaused ? busyMs : Math.min(retryMsMax, retryMs * 2 ** failures));
  }

  private get time() {
    return this.ports.service.time;
  }
}
