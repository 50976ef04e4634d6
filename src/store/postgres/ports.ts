import { type Accounts, accountMethods } from "../accounts/accounts.js";
import { browserOn } from "../browse/browser.js";
import type { Store } from "../workspace/workspace.js";
import { workspaceMethods } from "../workspace/workspace.js";
import {
  holder,
  type LockHolder,
  lockPostgres,
  openPostgres,
  type PostgresDatabase,
  type PostgresOptions,
} from "./connect.js";

/** A workspace on PostgreSQL has the same store and the same ledger as one on SQLite, for many machines. */
export interface SharedStoreOptions extends PostgresOptions {
  /** The folder that paths of this machine are relative to. */
  root: string;
}

export async function openSharedStore({ root, ...options }: SharedStoreOptions): Promise<Store> {
  return storeOn(await openPostgres(options), root);
}

export async function openSharedAccounts(options: PostgresOptions): Promise<Accounts> {
  const database = await openPostgres({ ...options, writes: "accounts" });
  return { ...accountMethods(database), close: () => database.close() };
}

/** Reads a workspace again and again, and changes nothing. */
export type SharedBrowser = Awaited<ReturnType<typeof openSharedBrowser>>;

export async function openSharedBrowser({ root, ...options }: SharedStoreOptions) {
  const database = await openPostgres(options);
  const { sql, read, close } = database;
  return {
    ...browserOn(database, root),
    /** Differs from the answer before if something was committed since, in any workspace of the server. */
    version: (): Promise<string> =>
      read(function* () {
        return String(yield* sql("SELECT CAST(pg_current_snapshot() AS TEXT)").value());
      }),
    lockHolder: (): Promise<(LockHolder & { since: number }) | null> =>
      read(() => holder(sql, options.address)),
    close,
  };
}

/** A workspace with its lock. */
export interface LockedStore {
  /** Its writes end with the lock. */
  store: Store;
  says(holder: LockHolder): Promise<void>;
  release(): Promise<void>;
}

/** Null if another process has the lock. */
export async function lockSharedStore(
  { root, ...options }: SharedStoreOptions,
  holder: LockHolder,
): Promise<LockedStore | null> {
  const database = await lockPostgres(options, holder);
  if (database === null) return null;
  const { says, release } = database;
  return { store: storeOn(database, root), says, release };
}

function storeOn(database: PostgresDatabase, root: string): Store {
  return { ...workspaceMethods({ ...database, root }), close: () => database.close() };
}
