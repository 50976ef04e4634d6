import type { Clock } from "../../../src/clock.js";
import type { Accounts } from "../../../src/core/ports/accounts.js";
import type { Store } from "../../../src/core/ports/store.js";

/** A new, empty workspace and its accounts, on one of the databases that they run on. */
export interface OpenedDatabase {
  store: Store;
  accounts: Accounts;
  /** Asks the database itself, past the store. */
  ask(sql: string): Promise<unknown[]>;
}

export type OpenDatabase = (clock: Clock) => Promise<OpenedDatabase>;
