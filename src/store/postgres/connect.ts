import type { Pool, PoolClient } from "pg";
import type { Clock } from "../../clock.js";
import type { Database, PendingQuery, Queries, Query, QueryResult, Script } from "../script.js";
import { bound, type Translation, translated } from "./dialect.js";
import { migrate } from "./schema.js";

export interface PostgresDatabase extends Database {
  close(): Promise<void>;
}

export interface PostgresOptions {
  /** `postgres://…`; `?schema=NAME` is the schema of the workspace, `bulkgen` if absent. */
  url: string;
  clock: Clock;
  /** Told of errors of connections that nobody is using, such as a restart of the database. */
  onIdleError(error: Error): void;
}

/** Connections of one process. */
const connectionsMax = 10;
/** Milliseconds after which an attempt to connect has failed. */
const connectMs = 10_000;

/** Opens a workspace on PostgreSQL, made or migrated. Rejects with PostgreSQL's error. */
export async function openPostgres({ url, clock, onIdleError }: PostgresOptions): Promise<PostgresDatabase> {
  const { address, schema } = placeOf(url);
  const { Pool: OpenPool } = (await import("pg")).default;
  const pool = new OpenPool({
    connectionString: address,
    max: connectionsMax,
    connectionTimeoutMillis: connectMs,
    options: `-c search_path=${schema}`,
    application_name: "bulkgen",
    types: { getTypeParser: parserOf },
  });
  pool.on("error", onIdleError);
  try {
    await migrate(pool, schema);
    return databaseOn(pool, schema, clock);
  } catch (error) {
    await pool.end();
    throw error;
  }
}

/** Where the database is, and in which of its schemas the workspace. */
function placeOf(url: string): { address: string; schema: string } {
  const address = new URL(url);
  const schema = address.searchParams.get("schema") ?? "bulkgen";
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw new Error(`expected a schema of lower-case letters, digits and _, got ${schema}`);
  address.searchParams.delete("schema");
  return { address: address.href, schema };
}

const types = { bool: 16, int8: 20, numeric: 1700 };

/** Values as SQLite gives them: numbers that fit into a double, and truth as 1 or 0. */
function parserOf(type: number): (text: string) => unknown {
  if (type === types.int8 || type === types.numeric) return Number;
  if (type === types.bool) return (text) => (text === "t" ? 1 : 0);
  return [21, 23, 26, 700, 701].includes(type) ? Number : (text) => text;
}

function databaseOn(pool: Pool, schema: string, clock: Clock): PostgresDatabase {
  const within = async <Result>(begin: string, script: () => Script<Result>): Promise<Result> => {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query(begin);
      const result = await drive(client, script());
      await client.query("COMMIT");
      return result;
    } catch (error) {
      // A connection that cannot even roll back is thrown away, and the database rolls back by itself.
      await client.query("ROLLBACK").catch((refused: Error) => {
        broken = refused;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  };
  return {
    sql: postgresQueries(),
    clock,
    // One writer at a time, as in SQLite: what the store's scripts decide by what they have read stays true until their end.
    atomic: (script) =>
      within(`BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('${schema}', 0))`, script),
    read: (script) => within("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", script),
    close: () => pool.end(),
  };
}

/** Runs a script from answer to answer. */
async function drive<Result>(client: PoolClient, script: Script<Result>): Promise<Result> {
  let step = script.next();
  while (!step.done) {
    let result: QueryResult;
    try {
      const { rows, rowCount } = await client.query(step.value.text, step.value.values);
      result = { rows, changes: rowCount ?? 0 };
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(result);
  }
  return step.value;
}

/** Queries by their text: each is translated once. */
function postgresQueries(): Queries {
  const queries = new Map<string, PostgresQuery>();
  return (text) => {
    let query = queries.get(text);
    if (!query) {
      query = new PostgresQuery(translated(text));
      queries.set(text, query);
    }
    return query;
  };
}

class PostgresQuery implements Query {
  constructor(private readonly translation: Translation) {}

  *get(...values: unknown[]) {
    const { rows } = yield this.ask(values);
    return rows[0];
  }

  *all(...values: unknown[]) {
    const { rows } = yield this.ask(values);
    return rows;
  }

  *value(...values: unknown[]) {
    const { rows } = yield this.ask(values);
    return rows[0] === undefined ? undefined : Object.values(rows[0])[0];
  }

  *run(...values: unknown[]) {
    const { changes } = yield this.ask(values);
    return changes;
  }

  *insert(...values: unknown[]) {
    const { text, values: ordered } = this.ask(values);
    const { rows } = yield { text: `${text} RETURNING id`, values: ordered };
    return rows[0]?.["id"] as number;
  }

  private ask(values: unknown[]): PendingQuery {
    return bound(this.translation, values);
  }
}
