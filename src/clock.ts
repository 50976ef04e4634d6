/** Time as an argument. The only implementation on real time is `system.ts`; tests and simulation bring their own. */
export interface Clock {
  /** UTC wall clock in milliseconds since 1970. May jump in either direction. */
  now(): number;
  /** Milliseconds since some fixed instant of this process; never goes back. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds, or at once when `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Randomness as an argument. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A version 4 UUID. */
  uuid(): string;
}
