import type { Clock } from "../../clock.js";

export interface Pace {
  /** Milliseconds for the whole transfer. */
  msMax: number;
  /** Milliseconds without a byte. */
  stallMsMax: number;
  /** Bytes a second that must come over each stretch of `stallMsMax`: a server that drips is no better than a silent one. */
  bytesPerSecondMin: number;
}

/** Aborts a transfer that stands still, crawls, lasts too long, or is no longer wanted. */
export class Watch {
  private readonly abort = new AbortController();
  private readonly over = new AbortController();
  private readonly endMs: number;
  private stalledMs: number;
  /** The stretch over which the pace is measured now. */
  private stretch: { endMs: number; bytes: number };
  /** Why it was aborted. */
  reason: string | null = null;
  private readonly unwanted = () => this.give("the download was interrupted");

  constructor(
    private readonly clock: Clock,
    private readonly pace: Pace,
    private readonly wanted: AbortSignal | undefined,
  ) {
    const now = clock.monotonic();
    this.endMs = now + pace.msMax;
    this.stalledMs = now + pace.stallMsMax;
    this.stretch = { endMs: this.stalledMs, bytes: 0 };
    wanted?.addEventListener("abort", this.unwanted, { once: true });
    if (wanted?.aborted === true) this.unwanted();
    else void this.look();
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** Bytes came, or the answer itself. */
  moved(bytes: number): void {
    this.stalledMs = this.clock.monotonic() + this.pace.stallMsMax;
    this.stretch.bytes += bytes;
  }

  end(): void {
    // Without a reason of its own each abort would make an error with a stack.
    this.over.abort("ended");
    this.wanted?.removeEventListener("abort", this.unwanted);
  }

  private async look(): Promise<void> {
    while (!this.over.signal.aborted) {
      const now = this.clock.monotonic();
      const reason = this.objection(now);
      if (reason !== null) return this.give(reason);
      const next = Math.min(this.endMs, this.stalledMs, this.stretch.endMs);
      await this.clock.sleep(next - now, this.over.signal);
    }
  }

  private objection(now: number): string | null {
    const { msMax, stallMsMax, bytesPerSecondMin } = this.pace;
    const seconds = stallMsMax / 1000;
    if (now >= this.endMs) return `the transfer took longer than ${msMax / 1000} s`;
    if (now >= this.stalledMs) return `no byte came for ${seconds} s`;
    if (now < this.stretch.endMs) return null;
    const { bytes } = this.stretch;
    this.stretch = { endMs: now + stallMsMax, bytes: 0 };
    if (bytes >= bytesPerSecondMin * seconds) return null;
    return `only ${bytes} bytes came in ${seconds} s; expected at least ${bytesPerSecondMin} a second`;
  }

  private give(reason: string): void {
    this.reason = reason;
    this.abort.abort();
  }
}
