/** Time as an argument. The only implementation on real time is `system.ts`; tests and simulation bring their own. */
export interface Clock {
  /** UTC wall clock in milliseconds since 1970. May jump in either direction. */
  now(): number;
  /** Milliseconds since some fixed instant of this process; never goes back. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds, or at once when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A clock that can wait for a time of day. */
export interface AlarmClock extends Clock {
  /**
   * Calls `ring` once, when the wall clock shows `at` (UTC ms), or earlier if the clock was set or the machine slept, so
   * that the caller checks the time again. Returns a function that cancels the alarm.
   */
  alarm(at: number, ring: () => void): () => void;
}

/** Randomness as an argument. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A version 4 UUID. */
  uuid(): string;
}
