import type { Clock } from "../clock.js";
import type { Send } from "../core/ports/send.js";
import type { DaySpan } from "../core/quota/quota.js";
import { servedAt } from "./answer.js";

/** Sets the service's clock from each answer. */
export function timed(send: Send, time: ServiceClock): Send {
  return async (request, signal) => {
    const tell = time.asking();
    const reply = await send(request, signal);
    const at = reply.kind === "answer" ? servedAt(reply) : null;
    if (at !== null) tell(at);
    return reply;
  };
}

/** By how much two clocks may disagree without one of them having been set, in ms. The service states whole seconds. */
const skewMs = 60_000;

/**
 * What time it is and how long something took, even if this machine's clock is wrong. A running process compares three
 * clocks, and only here:
 *
 * - The wall clock keeps running while the machine sleeps, but a person may set it, by years.
 * - The monotonic clock is never set, but it stands still while the machine sleeps.
 * - Each answer of the service states the service's own time.
 *
 * A wall clock that agrees with the service is believed. From one answer to the next the time passes on the wall clock
 * and on the monotonic one; where these part, the clock was set or the machine has slept, and which of the two is not
 * known before the next answer. Until then the time is a span.
 */
export class ServiceClock {
  /**
   * Milliseconds from the wall clock, and from the monotonic one, to the time that the service stated last; `later` is how
   * much later it may be: that answer was on its way for a while, and a clock that is believed may be slow.
   */
  private told: { wall: number; monotonic: number; later: number } | null = null;

  constructor(private readonly clock: Clock) {}

  /**
   * A request is sent: returns what takes the time that its answer tells (UTC ms). If the clock was set meanwhile or
   * the machine has slept, the answer may be hours old, and the next one tells more.
   */
  asking(): (at: number) => void {
    const parted = this.parting;
    const tookMs = this.stopwatch();
    return (at) => {
      if (this.told === null || Math.abs(this.parting - parted) <= skewMs) this.tell(at, tookMs());
    };
  }

  /** The time at the service (UTC ms). */
  get now(): DaySpan {
    const now = this.clock.now();
    if (this.told === null) return { earliest: now, latest: now };
    const byWall = now + this.told.wall;
    const steady = this.clock.monotonic() + this.told.monotonic;
    const { later } = this.told;
    if (Math.abs(byWall - steady) <= skewMs) return { earliest: byWall, latest: byWall + later };
    return { earliest: Math.min(byWall, steady), latest: Math.max(byWall, steady) + later };
  }

  /** A wait of so many milliseconds that begins now. */
  wait(ms: number): Wait {
    return new Wait(this.clock, ms);
  }

  /** Begins to measure: returns what tells the milliseconds since, without those that the machine has slept. */
  stopwatch(): () => number {
    const began = this.clock.monotonic();
    return () => this.clock.monotonic() - began;
  }

  /**
   * Milliseconds since a task was begun: by this machine's clock, unless that was set meanwhile, which shows when the
   * task is far younger by the service's clock. `at` is the begin by this machine's clock, `sentAt` by the service's,
   * both UTC ms; `toldMs` is the age that the service itself tells, where it does. A negative age cannot be right, and
   * is not believed of the service.
   */
  taskAge({ at, sentAt }: { at: number; sentAt: number }, toldMs: number | null): number {
    const own = this.clock.now() - at;
    const told = toldMs ?? this.now.earliest - sentAt;
    return told >= -skewMs && told < Math.abs(own) - skewMs ? Math.max(0, told) : own;
  }

  private tell(at: number, tookMs: number): void {
    const now = this.clock.now();
    const wall = Math.abs(at - now) > skewMs ? at - now : 0;
    this.told = { wall, monotonic: this.parting + wall, later: Math.max(0, at + tookMs - now - wall) };
  }

  /** How far the wall clock is from the monotonic one. */
  private get parting(): number {
    return this.clock.now() - this.clock.monotonic();
  }
}

/**
 * A while that only this process knows of. It is over when either clock says so: the wall clock counts the time that
 * the machine slept, and the monotonic clock ends the wait when somebody sets the wall clock back by ten years.
 */
export class Wait {
  private readonly endsAt: number;
  private readonly ends: number;

  constructor(
    private readonly clock: Clock,
    ms: number,
  ) {
    this.endsAt = clock.now() + ms;
    this.ends = clock.monotonic() + ms;
  }

  get isOver(): boolean {
    return this.until <= this.clock.now();
  }

  /** When it is over (UTC ms), as the wall clock stands now. */
  get until(): number {
    const { clock } = this;
    return Math.min(this.endsAt, Math.ceil(clock.now() + this.ends - clock.monotonic()));
  }
}
