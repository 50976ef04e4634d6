export interface OwnPostgres {
  url: string;
  /** Ends it as an administrator does; `start` brings it up again at the same address, with what it had. */
  halt(): Promise<void>;
  start(): Promise<void>;
  /** Ends it and removes what it had. */
  stop(): Promise<void>;
}

/** `host`: an address of this machine, instead of loopback. */
export function startOwnPostgres(options?: { host?: string }): Promise<OwnPostgres>;
