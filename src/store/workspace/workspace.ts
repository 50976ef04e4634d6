import type { Clock } from "../../clock.js";
import { named, type Sqlite } from "../../sqlite.js";
import { isBelow } from "../../text/within.js";
import { finish, sqliteDatabase, sqliteQueries } from "../on-sqlite.js";
import { copyInto, type Defer, openDatabase, strangeState, transactions } from "../open.js";
import type { Script } from "../script.js";
import { approvalChanges, approvalMethods } from "./approvals.js";
import { attemptChanges, attemptMethods } from "./attempts/attempts.js";
import { chargeMethods } from "./attempts/charges.js";
import { lostRequestMethods } from "./attempts/lost-requests.js";
import { chainMethods } from "./chains.js";
import { dueMethods } from "./due.js";
import { itemChanges, itemMethods } from "./items.js";
import { orderChanges, orderMethods } from "./orders.js";
import { archivedMethods } from "./outputs.js";
import { type RestoredItem, restoreItem } from "./restore.js";
import { runChanges, runMethods } from "./runs.js";
import { sheetMethods } from "./sheets.js";
import { taskOutputChanges, taskOutputMethods } from "./task-outputs.js";
import type { RootedDatabase } from "./transition.js";
import { workspaceMigrations } from "./workspace-schema.js";

/** The database of a workspace, and the folder that its paths are relative to. */
export interface WorkspacePlace {
  stateFile: string;
  root: string;
}

/** Opens a workspace's database (or ":memory:"), created or migrated. Throws NewerDatabase, or SQLite's error. */
export function openWorkspace({ stateFile, root }: WorkspacePlace, clock: Clock): Store {
  const db = openDatabase(stateFile, workspaceMigrations);
  try {
    refuseStrangeNames(db, stateFile);
  } catch (error) {
    db.close();
    throw named(stateFile, error);
  }
  return workspaceOn(db, clock, root);
}

/** Names that may lead out of a job's folder. */
const oddNames = `SELECT file FROM outputs
  WHERE file IS NOT NULL AND (file = '' OR file GLOB '/*' OR file GLOB '*.[./]*' OR file GLOB '*//*' OR instr(file, '\\') > 0
    OR file GLOB '*' || char(10) || '*' OR file GLOB '*/' OR file GLOB './*')`;

/**
 * Names of files are checked when they are made. Those of a state that came with a folder are checked when it is opened, by the
 * same rule. Throws EarlyExit for a name that leads out of its folder.
 */
export function refuseStrangeNames(db: Sqlite, path: string): void {
  for (const { file } of db.prepare(oddNames).iterate() as Iterable<{ file: string }>)
    if (!isBelow(String(file)))
      throw strangeState(
        path,
        `names the file ${JSON.stringify(String(file).slice(0, 200))}, outside of its job's folder`,
      );
}

/** Makes a database, which gets its name only when it is complete and durable. Rejects with SQLite's error. */
export async function makeWorkspace(
  { stateFile, root }: WorkspacePlace,
  clock: Clock,
  fill: (store: Store, restore: (runId: number, item: RestoredItem) => void) => Promise<void>,
): Promise<void> {
  const db = openDatabase(":memory:", workspaceMigrations);
  try {
    const connection = { sql: sqliteQueries(db), clock };
    const atomic = transactions(db);
    await fill(workspaceOn(db, clock, root), (runId, item) =>
      atomic(() => finish(restoreItem(connection, runId, item))),
    );
    copyInto(db, stateFile);
  } finally {
    db.close();
  }
}

/** The store on an open SQLite database with the newest schema. */
export function workspaceOn(db: Sqlite, clock: Clock, root: string, defer?: Defer): Store {
  const connection = sqliteDatabase(db, clock, defer);
  return {
    ...workspaceMethods({ ...connection, root }),
    close: () => connection.close(),
  };
}

/** A part of a transaction: `yield*` runs it and gives its result. */
export type TransactionPart<Result> = Generator<unknown, Result, unknown>;

type AsParts<Scripts> = {
  [Name in keyof Scripts]: Scripts[Name] extends (...given: infer Given) => Script<infer Result>
    ? (...given: Given) => TransactionPart<Result>
    : never;
};

/** The methods of the store that orders and repairs use, as parts of one transaction. */
export type Changes = AsParts<
  ReturnType<typeof runChanges> &
    ReturnType<typeof itemChanges> &
    ReturnType<typeof attemptChanges> &
    ReturnType<typeof taskOutputChanges> &
    ReturnType<typeof approvalChanges> &
    ReturnType<typeof orderChanges>
>;

/** One workspace: jobs, runs, items, attempts, outputs, orders. Every method is one transaction. */
export type Store = ReturnType<typeof workspaceMethods> & { close(): Promise<void> };

/** The store on an open database of either kind. */
export function workspaceMethods(connection: RootedDatabase) {
  const changes: Changes = {
    ...runChanges(connection),
    ...itemChanges(connection),
    ...attemptChanges(connection),
    ...taskOutputChanges(connection),
    ...approvalChanges(connection),
    ...orderChanges(connection),
  };
  return {
    ...runMethods(connection),
    ...chainMethods(connection),
    ...approvalMethods(connection),
    ...itemMethods(connection),
    ...dueMethods(connection),
    ...attemptMethods(connection),
    ...lostRequestMethods(connection),
    ...chargeMethods(connection),
    ...taskOutputMethods(connection),
    ...archivedMethods(connection),
    ...orderMethods(connection),
    ...sheetMethods(connection),
    /** Makes several changes in one transaction: all of them, or none if `work` throws. */
    // Callers can only combine `changes`, which are scripts of queries, so their work is one too.
    together: async <Result>(work: (changes: Changes) => TransactionPart<Result>): Promise<Result> =>
      connection.atomic(() => work(changes) as Script<Result>),
  };
}
