import type { Clock } from "../clock.js";
import type { Store } from "../core/store.js";
import { type Sqlite, statements } from "../sqlite.js";
import { archivedMethods } from "./archived.js";
import { attemptMethods } from "./attempts.js";
import { copyInto } from "./copy.js";
import type { Connection } from "./item-rows.js";
import { itemMethods } from "./items.js";
import { openDatabase, transactions } from "./open.js";
import { orderMethods } from "./orders.js";
import { runMethods } from "./runs.js";
import { sheetMethods } from "./sheets.js";
import { workspaceMigrations } from "./workspace-schema.js";

/** Opens a workspace's database (or ":memory:"), made or brought up to date. Throws NewerDatabase, or SQLite's error. */
export function openWorkspace(path: string, clock: Clock): Store {
  return workspaceOn(openDatabase(path, workspaceMigrations), clock);
}

/** Makes a whole database at once: nothing has its name until it is complete and durable. Rejects with SQLite's error. */
export async function makeWorkspace(
  path: string,
  clock: Clock,
  fill: (store: Store) => Promise<void>,
): Promise<void> {
  const db = openDatabase(":memory:", workspaceMigrations);
  try {
    await fill(workspaceOn(db, clock));
    copyInto(db, path);
  } finally {
    db.close();
  }
}

/** The store on a database that is open and of the newest schema. */
export function workspaceOn(db: Sqlite, clock: Clock): Store {
  const connection: Connection = { sql: statements(db), atomic: transactions(db), clock };
  return {
    ...runMethods(connection),
    ...itemMethods(connection),
    ...attemptMethods(connection),
    ...archivedMethods(connection),
    ...orderMethods(connection),
    ...sheetMethods(connection),
    close: () => db.close(),
  };
}
