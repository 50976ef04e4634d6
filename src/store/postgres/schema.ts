import type { Pool } from "pg";
import { accountsTables, accountsTriggers } from "../accounts/accounts-schema.js";
import { NewerDatabase } from "../open.js";
import { postgresTriggers } from "../triggers.js";
import { knownTransitions, workspaceTables, workspaceTriggers } from "../workspace/workspace-schema.js";
import { tablesOf } from "./dialect.js";

/** The workspace and its accounts in one schema, one text a version. A released version is never edited. */
const versions: readonly string[] = [
  [
    // Both have it for SQLite's way to open a file.
    ...[workspaceTables, ...accountsTables].map((tables) => tablesOf(withoutOpened(tables))),
    knownTransitions(),
    postgresTriggers([...workspaceTriggers, ...accountsTriggers]),
  ].join("\n"),
];

function withoutOpened(tables: string): string {
  return tables.replace(/CREATE TABLE opened[^;]*;\s*INSERT INTO opened[^;]*;/, "");
}

/** Makes the schema, or brings it to the newest version. Throws NewerDatabase for one that this program does not know. */
export async function migrate(pool: Pool, schema: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    // Several processes may open a new database at the same time.
    await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", [schema]);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await client.query("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)");
    const { rows } = await client.query("SELECT version FROM schema_version");
    const found = (rows[0]?.version ?? 0) as number;
    if (found > versions.length)
      throw new NewerDatabase(
        `the database was written by a newer bulkgen: expected schema ${versions.length} or older, got ${found}; update bulkgen`,
      );
    for (const text of versions.slice(found)) await client.query(text);
    if (found === 0) await client.query("INSERT INTO schema_version VALUES ($1)", [versions.length]);
    else await client.query("UPDATE schema_version SET version = $1", [versions.length]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}
