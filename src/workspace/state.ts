import { dirname } from "node:path";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import type { LoggedWorkspace } from "../core/ports/accounts.js";
import type { Run } from "../core/ports/store.js";
import { type Accounts, openAccounts } from "../store/accounts/accounts.js";
import { type QuotaReader, quotaOn } from "../store/accounts/quota-reader.js";
import { type Browser, openBrowser } from "../store/browse/browser.js";
import { sqliteDatabase } from "../store/on-sqlite.js";
import { openReadOnly } from "../store/open.js";
import type { DatabaseAddress } from "../store/postgres/address.js";
import type { Database } from "../store/script.js";
import { type NewsReader, newsOn } from "../store/workspace/news.js";
import { type Steps, stepsOn } from "../store/workspace/steps.js";
import type { Store } from "../store/workspace/workspace.js";
import { openWorkspace } from "../store/workspace/workspace.js";
import { readIdentity } from "./identity.js";
import type { Workspace } from "./workspace.js";

/** The state of a workspace is in files of this machine, or in a PostgreSQL database that many machines share. */
export type StatePlace = Pick<Workspace, "root" | "stateFile" | "database">;
export type AccountsPlace = Pick<Workspace, "stateFile" | "accountsFile" | "database"> &
  // A client of the library has no workspace.
  Partial<Pick<Workspace, "root" | "markerFolder">>;

/** Throws EarlyExit for a command that reads the files of a state, if the state is on a server. */
export function mustBeHere({ database }: Pick<Workspace, "database">, instead: string): void {
  if (database === null) return;
  throw new EarlyExit(
    "usage",
    `the state of this workspace is in the database ${database.shown}, and this command needs it in files here. Nothing was changed. ${instead}`,
  );
}

/** Where a state is, the same on all machines that share it. */
function stateName({ stateFile, database }: Pick<Workspace, "stateFile" | "database">): string {
  return database === null ? stateFile : `postgres:${database.schema}`;
}

/**
 * A workspace as the spend log names it: by its id, which moves with the folder, or by its database, which has the state
 * of many folders. A folder that is no workspace yet has only a place.
 */
export function loggedWorkspace(place: Omit<AccountsPlace, "accountsFile">): LoggedWorkspace {
  const { stateFile, database, markerFolder, root = dirname(stateFile) } = place;
  const state = stateName(place);
  const id = database === null && markerFolder !== undefined ? readIdentity(markerFolder)?.id : undefined;
  return { name: id ?? state, state, root };
}

/** Opens a workspace's store. Rejects with NewerDatabase, DatabaseTrouble, or the database's error. */
export async function openStore({ root, stateFile, database }: StatePlace, clock: Clock): Promise<Store> {
  if (database === null) return openWorkspace({ root, stateFile }, clock);
  const { openSharedStore } = await import("../store/postgres/ports.js");
  return openSharedStore({ address: database, root, clock });
}

/** Opens a workspace's store for as long as `use` takes. */
export async function withStore<Result>(
  place: StatePlace,
  clock: Clock,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  const store = await openStore(place, clock);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/**
 * Opens the shared data of the accounts: with the workspace if that is on a server, otherwise in a file that all
 * workspaces here share.
 */
export async function openSharedData(
  { accountsFile, database }: Pick<AccountsPlace, "accountsFile" | "database">,
  clock: Clock,
): Promise<Accounts> {
  if (database === null) return openAccounts(accountsFile, clock);
  const { openSharedAccounts } = await import("../store/postgres/ports.js");
  return openSharedAccounts({ address: database, clock });
}

/** A reader on connections of its own: it changes nothing, and waits for no writer. */
export type Opened<Reader> = Reader & { close(): Promise<void> };

export async function openSteps(place: StatePlace, clock: Clock): Promise<Opened<Steps>> {
  return reading(place.stateFile, place, clock, stepsOn);
}

export async function openNews(place: StatePlace, runId: number, clock: Clock): Promise<Opened<NewsReader>> {
  return reading(place.stateFile, place, clock, (database) => newsOn(database, runId));
}

/** The quota of a run's account. */
export async function openQuota(
  place: AccountsPlace,
  { origin, accountId }: Pick<Run, "origin" | "accountId">,
  clock: Clock,
): Promise<Opened<QuotaReader>> {
  return reading(place.accountsFile, place, clock, (database) => quotaOn(database, origin, accountId));
}

/**
 * Whether a database accepts no writes: a replica, or a database that is set to read-only. Rejects with
 * DatabaseTrouble.
 */
export async function isReadOnly(database: DatabaseAddress): Promise<boolean> {
  const { takesNoWrites } = await import("../store/postgres/connect.js");
  return takesNoWrites(database);
}

/** The workspace page by page. Rejects with NewerDatabase, DatabaseTrouble, or the database's error. */
export async function openPages(
  { root, stateFile, database }: StatePlace,
  clock: Clock,
): Promise<Opened<Browser>> {
  if (database === null) return openBrowser({ stateFile, root }, clock);
  const { openSharedBrowser } = await import("../store/postgres/ports.js");
  return openSharedBrowser({ address: database, root, clock });
}

async function reading<Reader extends object>(
  file: string,
  { database }: Pick<Workspace, "database">,
  clock: Clock,
  readerOn: (database: Database) => Reader,
): Promise<Opened<Reader>> {
  if (database !== null) {
    const { openPostgres } = await import("../store/postgres/connect.js");
    const opened = await openPostgres({ address: database, clock });
    return { ...readerOn(opened), close: () => opened.close() };
  }
  const db = openReadOnly(file);
  return { ...readerOn(sqliteDatabase(db, clock)), close: async () => void db.close() };
}
