import type { Pool, PoolClient } from "pg";
import { EarlyExit } from "../../core/exit.js";
import {
  accountsTables,
  accountsTriggers,
  leftOutTable,
  listPricesTable,
  placesTables,
  repeatedColumn,
} from "../accounts/accounts-schema.js";
import { NewerDatabase } from "../open.js";
import { postgresTriggers } from "../triggers.js";
import {
  givenUpAndAccepted,
  knownTransitions,
  workspaceTables,
  workspaceTriggers,
} from "../workspace/workspace-schema.js";
import { tablesOf } from "./dialect.js";

/**
 * Which daemon has which due time. Each keeps the schedules and their runs in a file of its own; this is what the daemons
 * of several machines share.
 */
const scheduledRunsTable = `
  CREATE TABLE scheduled_runs (
    schedule TEXT COLLATE "C" NOT NULL,
    due_at BIGINT NOT NULL,
    daemon TEXT NOT NULL,
    PRIMARY KEY (schedule, due_at)
  );`;

/** The workspace and its accounts in one schema, one text a version. A released version is never edited. */
const versions: readonly string[] = [
  [
    // Both have it for SQLite's way to open a file.
    ...[workspaceTables, ...accountsTables].map((tables) => tablesOf(withoutOpened(tables))),
    scheduledRunsTable,
    knownTransitions(),
    postgresTriggers([...workspaceTriggers, ...accountsTriggers]),
  ].join("\n"),
  tablesOf(listPricesTable),
  tablesOf(givenUpAndAccepted),
  tablesOf(placesTables),
  tablesOf(leftOutTable),
  tablesOf(repeatedColumn),
];

function withoutOpened(tables: string): string {
  return tables.replace(/CREATE TABLE opened[^;]*;\s*INSERT INTO opened[^;]*;/, "");
}

/**
 * The place of a state that was moved out of a database, or is being moved in: until the move is complete, nobody uses
 * the database.
 */
const movedTable = "CREATE TABLE IF NOT EXISTS moved (place TEXT NOT NULL)";

export interface MigrateOptions {
  schema: string;
  /** The address for people. */
  shown: string;
  /** For the move itself. */
  evenIfMoved?: boolean;
}

/**
 * Makes the schema, or upgrades it to the newest version. Throws NewerDatabase for a version that this program does not
 * know, and EarlyExit if the state is elsewhere.
 */
export async function migrate(
  pool: Pool,
  { schema, shown, evenIfMoved = false }: MigrateOptions,
): Promise<void> {
  const client = await pool.connect();
  try {
    // An existing schema needs no write, so a read-only database can be read.
    const { rows } = await client.query("SELECT to_regclass('moved') AS moved");
    const isThere = rows[0]?.moved !== null && (await versionIn(client)) === versions.length;
    if (!isThere) await make(client, schema);
    const moved = (await client.query("SELECT place FROM moved")).rows[0]?.place as string | undefined;
    if (moved !== undefined && !evenIfMoved)
      throw new EarlyExit(
        "usage",
        `the state of this workspace is not in the database ${shown}, but in ${moved}. Nothing was sent. Unset BULKGEN_DATABASE_URL to use it there, or move it here, on that machine, with \`bulkgen migrate --from\` and that path.`,
      );
  } finally {
    client.release();
  }
}

async function make(client: PoolClient, schema: string): Promise<void> {
  await client.query("BEGIN");
  try {
    // Several processes may open a new database at the same time.
    await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", [schema]);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await client.query("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)");
    const found = await versionIn(client);
    if (found > versions.length)
      throw new NewerDatabase(
        `the database was written by a newer bulkgen: expected schema ${versions.length} or older, got ${found}; update bulkgen`,
      );
    await client.query(movedTable);
    for (const text of versions.slice(found)) await client.query(text);
    if (found === 0) await client.query("INSERT INTO schema_version VALUES ($1)", [versions.length]);
    else await client.query("UPDATE schema_version SET version = $1", [versions.length]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** 0 for a schema without tables. */
async function versionIn(client: PoolClient): Promise<number> {
  const { rows } = await client.query("SELECT version FROM schema_version");
  return (rows[0]?.version ?? 0) as number;
}
