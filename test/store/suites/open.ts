import type { Clock } from "../../../src/clock.js";
import type { Accounts } from "../../../src/store/accounts/accounts.js";
import type { NewsReader } from "../../../src/store/workspace/news.js";
import type { Steps } from "../../../src/store/workspace/steps.js";
import type { Store } from "../../../src/store/workspace/workspace.js";

/** A new, empty workspace and its accounts, on one of the databases that they run on. */
export interface OpenedDatabase {
  store: Store;
  accounts: Accounts;
  openSteps(): Promise<Steps>;
  newsOf(runId: number): Promise<NewsReader>;
  /** Asks the database itself, past the store. */
  ask(sql: string): Promise<unknown[]>;
}

export type OpenDatabase = (clock: Clock) => Promise<OpenedDatabase>;
