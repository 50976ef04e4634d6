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

/** How far two clocks may differ before one of them counts as set, in ms. The service states whole seconds. */
const skewMs = 60_000;

/**
 * What time it is and how long something took, even if this machine's clock is wrong. A running process compares three
 * clocks, and only here:
 *
 * - The wall clock keeps running while the machine sleeps, but a person may set it, by years.
 * - The monotonic clock is never set, but it stands still while the machine sleeps.
 * - Each answer of the service states the service's own time.
 *
 * A wall clock that agrees with the service is believed. Between answers, the wall clock and the monotonic one measure
 * the time. If they differ, the clock was set or the machine slept; only the next answer shows which. Until then the time
 * is a span.
 */
export class ServiceClock {
  /**
   * What to add to the wall clock, and to the monotonic one, to get the service's time by its last answer (ms). The time
   * may be `later` by so much: the answer was on its way for a while, and a clock that is believed may be slow.
   */
  private offsets: { wall: number; monotonic: number; later: number } | null = null;

  constructor(private readonly clock: Clock) {}

  /**
   * Call it when a request is sent: returns a function for the time that the answer states (UTC ms). If the clock was set
   * or the machine slept meanwhile, the answer may be hours old and is ignored.
   */
  asking(): (at: number) => void {
    const parted = this.parting;
    const tookMs = this.stopwatch();
    return (at) => {
      if (this.offsets === null || Math.abs(this.parting - parted) <= skewMs) this.tell(at, tookMs());
    };
  }

  /** The time at the service (UTC ms). */
  get now(): DaySpan {
    const now = this.clock.now();
    if (this.offsets === null) return { earliest: now, latest: now };
    const byWall = now + this.offsets.wall;
    const steady = this.clock.monotonic() + this.offsets.monotonic;
    const { later } = this.offsets;
    if (Math.abs(byWall - steady) <= skewMs) return { earliest: byWall, latest: byWall + later };
    return { earliest: Math.min(byWall, steady), latest: Math.max(byWall, steady) + later };
  }

  /** A wait of this many milliseconds that begins now. */
  wait(ms: number): Wait {
    return new Wait(this.clock, ms);
  }

  /** Starts to measure: returns a function that gives the milliseconds since then, without the machine's sleep. */
  stopwatch(): () => number {
    const began = this.clock.monotonic();
    return () => this.clock.monotonic() - began;
  }

  /**
   * The age of a task in ms, by this machine's clock. If the task is far younger by the service's clock, this machine's
   * clock was set meanwhile, and the service's counts. `at` is the start by this machine's clock, `sentAt` by the
   * service's, both UTC ms; `statedMs` is the age that the service itself states, or null. A negative age from the service
   * cannot be right, and is ignored.
   */
  taskAge({ at, sentAt }: { at: number; sentAt: number }, statedMs: number | null): number {
    const own = this.clock.now() - at;
    const stated = statedMs ?? this.now.earliest - sentAt;
    return stated >= -skewMs && stated < Math.abs(own) - skewMs ? Math.max(0, stated) : own;
  }

  private tell(at: number, tookMs: number): void {
    const now = this.clock.now();
    const wall = Math.abs(at - now) > skewMs ? at - now : 0;
    this.offsets = { wall, monotonic: this.parting + wall, later: Math.max(0, at + tookMs - now - wall) };
  }

  /** How far the wall clock is from the monotonic one. */
  private get parting(): number {
    return this.clock.now() - this.clock.monotonic();
  }
}

/**
 * A wait within this process. It is over when either clock says so: the wall clock counts the time that the machine
 * slept, and the monotonic clock ends the wait even if somebody sets the wall clock back by ten years.
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

  /** When it is over (UTC ms), by the wall clock's present setting. */
  get until(): number {
    const { clock } = this;
    return Math.min(this.endsAt, Math.ceil(clock.now() + this.ends - clock.monotonic()));
  }
}
