export interface OwnPostgres {
  url: string;
  /** Ends it as an administrator does; `start` brings it up again at the same address, with what it had. */
  halt(): Promise<void>;
  start(): Promise<void>;
  /** Ends it and removes what it had. */
  stop(): Promise<void>;
}

/**
 * `host`: an address of this machine, instead of loopback. `inBackground`: it does not count as something that this process
 * waits for.
 */
export function startOwnPostgres(options?: { host?: string; inBackground?: boolean }): Promise<OwnPostgres>;
