import type { Clock } from "../clock.js";
import type { DaySpan } from "../core/day.js";
import type { Send } from "../core/ports/send.js";
import { servedAt } from "./answer.js";

/** Hands on what time it is at the service, from whatever it answers. */
export function timed(send: Send, time: ServiceTime): Send {
  return async (request, signal) => {
    const tell = time.asking();
    const reply = await send(request, signal);
    const at = reply.kind === "answer" ? servedAt(reply) : null;
    if (at !== null) tell(at);
    return reply;
  };
}

/** By how much two clocks may disagree without one of them having been set, in ms. */
const skewMs = 60_000;

/**
 * What time it is, whatever this machine's clock shows: each answer of the service tells its own time. A clock that
 * agrees with it is believed. From one answer to the next the time passes on the wall clock and on the one that nobody
 * sets; where these part, the clock was set or the machine has slept, and until the next answer nobody knows which.
 */
export class ServiceTime {
  /** Milliseconds from this machine's clock, and from its monotonic one, to the time as it was told last. */
  private told: { wall: number; monotonic: number } | null = null;

  constructor(private readonly clock: Clock) {}

  /**
   * A request is sent: returns what takes the time that its answer tells (UTC ms). If the clock was set meanwhile or the
   * machine has slept, the answer may be hours old, and the next one tells more.
   */
  asking(): (at: number) => void {
    const parted = this.parting;
    return (at) => {
      if (this.told === null || Math.abs(this.parting - parted) <= skewMs) this.tell(at);
    };
  }

  private tell(at: number): void {
    const now = this.clock.now();
    const wall = Math.abs(at - now) > skewMs ? at - now : 0;
    this.told = { wall, monotonic: this.parting + wall };
  }

  /** How far the wall clock is from the one that nobody sets. */
  private get parting(): number {
    return this.clock.now() - this.clock.monotonic();
  }

  get now(): DaySpan {
    const now = this.clock.now();
    if (this.told === null) return { earliest: now, latest: now };
    const byWall = now + this.told.wall;
    const steady = this.clock.monotonic() + this.told.monotonic;
    if (Math.abs(byWall - steady) <= skewMs) return { earliest: byWall, latest: byWall };
    return { earliest: Math.min(byWall, steady), latest: Math.max(byWall, steady) };
  }
}
