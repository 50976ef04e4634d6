/** Time as an argument. The only implementation on real time is `system.ts`; tests and simulation bring their own. */
export interface Clock {
  /** UTC wall clock in milliseconds since 1970. May jump in either direction. */
  now(): number;
  /** Milliseconds since some fixed instant of this process; never goes back. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds, or at once when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A clock by which somebody can wait for a time of the day. */
export interface AlarmClock extends Clock {
  /**
   * Calls `ring` once, when the wall clock shows `at` (UTC ms). Sooner when it was set meanwhile, as it seems to be after
   * the machine has slept, so that whoever waits looks what time it is. Returns what takes it back.
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
