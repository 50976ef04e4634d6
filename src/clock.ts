/** Time as an argument. The only implementation on real time is `system.ts`; tests and simulation bring their own. */
export interface Clock {
  /** UTC wall clock in milliseconds since 1970. May jump in either direction. */
  now(): number;
  /** Milliseconds since some fixed instant of this process; never goes back. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds, or at once when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Told what a database's clock showed at some moment of the last `withinMs` milliseconds. From then on `now` goes by that
   * clock, which all machines of a fleet share; the machine's own may be wrong or be set.
   */
  follow?(time: number, withinMs: number): void;
}

/** A clock that can wait for a time of day. */
export interface AlarmClock extends Clock {
  /**
   * Calls `ring` once, when the wall clock shows `at` (UTC ms), or earlier if the clock was set or the machine slept, so
   * that the caller checks the time again. Returns a function that cancels the alarm.
   */
  alarm(at: number, ring: () => void): () => void;
}

/** The machine's clock, until it is given a shared one. */
export function followingClock(own: AlarmClock): AlarmClock {
  /** What the shared clock shows, less the monotonic time; null before the first word of it. */
  let offset: number | null = null;
  const monotonic = () => own.monotonic();
  const now = () => (offset === null ? own.now() : Math.floor(monotonic() + offset));
  return {
    now,
    monotonic,
    sleep: (ms, signal) => own.sleep(ms, signal),
    alarm: (at, ring) => own.alarm(own.now() + at - now(), ring),
    follow(time, withinMs) {
      // The shared clock shows something from `time` to `time + withinMs` now. What agrees with that is left as it is.
      const shown = offset === null ? time : monotonic() + offset;
      offset = Math.min(Math.max(shown, time), time + withinMs) - monotonic();
    },
  };
}

/** Randomness as an argument. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A version 4 UUID. */
  uuid(): string;
}

/** What a loop sleeps by: until a time, or until the bell rings. */
export class WakeSignal {
  private hasRung = false;
  private wake: () => void = () => {};

  ring(): void {
    this.hasRung = true;
    this.wake();
  }

  /** From here on a ring counts: earlier ones are dealt with by the turn that begins now. */
  listen(): void {
    this.hasRung = false;
  }

  /**
   * Sleeps until the clock shows `at` (UTC ms) or was set, or until it rings; not at all when it has rung since
   * `listen`.
   */
  async until(clock: AlarmClock, at: number): Promise<void> {
    if (this.hasRung) return;
    await new Promise<void>((resolve) => {
      const takeBack = clock.alarm(at, resolve);
      this.wake = () => {
        takeBack();
        resolve();
      };
    });
    this.wake = () => {};
  }
}
