import pg from "pg";
import { startOwnPostgres } from "../scripts/postgres.mjs";

/**
 * A real PostgreSQL for tests: the one of TEST_DATABASE_URL, or one of their own on loopback. It keeps nothing safe, for
 * speed; each workspace that is made in it has a schema of its own.
 */
export interface TestPostgres {
  /** The address of a new, empty workspace. */
  newWorkspace(): string;
  /** Runs SQL in such a workspace. */
  query(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

export async function startPostgres(): Promise<TestPostgres> {
  const given = process.env["TEST_DATABASE_URL"];
  const server = given === undefined ? await startOwnPostgres() : { url: given, stop: async () => undefined };
  const made: string[] = [];
  return {
    newWorkspace() {
      const schema = `test_${process.pid}_${Math.floor(performance.now() * 1_000)}_${made.length}`;
      made.push(schema);
      return `${server.url}?schema=${schema}`;
    },
    query: (url, sql, values) =>
      withClient(server.url, async (client) => {
        await client.query(`SET search_path = ${new URL(url).searchParams.get("schema")}`);
        return (await client.query(sql, values)).rows;
      }),
    async close() {
      if (given !== undefined)
        await withClient(server.url, async (client) => {
          for (const schema of made)
            for (const end of ["", "_sandbox", "_queue", "_sandbox_queue"])
              await client.query(`DROP SCHEMA IF EXISTS ${schema}${end} CASCADE`);
        });
      await server.stop();
    },
  };
}

async function withClient<Result>(url: string, use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const types = { getTypeParser: () => (text: string) => (/^-?\d+$/.test(text) ? Number(text) : text) };
  const client = new pg.Client({ connectionString: url, types });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
