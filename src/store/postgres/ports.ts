import type { Clock } from "../../clock.js";
import type { Accounts } from "../../core/ports/accounts.js";
import type { Store } from "../../core/ports/store.js";
import { accountMethods } from "../accounts/accounts.js";
import { workspaceMethods } from "../workspace/workspace.js";
import { openPostgres, type PostgresDatabase } from "./connect.js";

/** A workspace and its accounts on PostgreSQL: the same store and the same ledger as on SQLite, for many machines. */
export interface SharedWorkspace {
  store: Store;
  accounts: Accounts;
}

export interface SharedWorkspaceOptions {
  url: string;
  /** The folder that paths of this machine are relative to. */
  root: string;
  clock: Clock;
  onIdleError(error: Error): void;
}

/** Opens both on one pool of connections, which closes with the store. */
export async function openSharedWorkspace(options: SharedWorkspaceOptions): Promise<SharedWorkspace> {
  const database: PostgresDatabase = await openPostgres(options);
  return {
    store: { ...workspaceMethods({ ...database, root: options.root }), close: () => database.close() },
    accounts: { ...accountMethods(database), close: async () => undefined },
  };
}
