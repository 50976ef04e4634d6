import type { Clock } from "../clock.js";
import type { Store } from "../core/store.js";
import { archivedMethods } from "./archived.js";
import { attemptMethods } from "./attempts.js";
import type { Connection } from "./item-rows.js";
import { itemMethods } from "./items.js";
import { openDatabase, statements, transactions } from "./open.js";
import { orderMethods } from "./orders.js";
import { runMethods } from "./runs.js";
import { sheetMethods } from "./sheets.js";
import { workspaceMigrations } from "./workspace-schema.js";

/** Opens a workspace's database (or ":memory:"), made or brought up to date. Throws NewerDatabase, or SQLite's error. */
export function openWorkspace(path: string, clock: Clock): Store {
  const db = openDatabase(path, workspaceMigrations);
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
