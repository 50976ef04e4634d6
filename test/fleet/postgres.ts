import pg from "pg";
import { startOwnPostgres } from "../../scripts/postgres.mjs";

/**
 * A real PostgreSQL for tests: the one of TEST_DATABASE_URL, or one of their own on loopback. It keeps nothing safe, for
 * speed; each workspace that is made in it has a schema of its own.
 */
export interface TestPostgres {
  /** The address of a new, empty workspace. */
  newWorkspace(): string;
  /** Takes everything out of such a workspace that was written since it was made, and counts from 1 again. */
  empty(url: string): Promise<void>;
  /** Runs SQL in such a workspace. */
  query(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Stops the server, and starts it again at the same address. */
  halt(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/**
 * `mustStop`: one that may be stopped, which the given one is not. `inBackground`: waits are skipped while only the server
 * runs (`../e2e/skipping-clock.ts`).
 */
export async function startPostgres({ mustStop = false, inBackground = false } = {}): Promise<TestPostgres> {
  const given = process.env["TEST_DATABASE_URL"];
  const own = given === undefined || mustStop ? await startOwnPostgres({ inBackground }) : null;
  const url = own?.url ?? `${given}`;
  const mustBeOwn = () => {
    if (own === null) throw new Error("the server of TEST_DATABASE_URL is not ours to stop");
    return own;
  };
  const made: string[] = [];
  let client = await connectedTo(url);
  let last: Promise<unknown> = Promise.resolve();
  /** One after the other, on a connection that is kept: a new one costs the server more than most queries. */
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
  const ask = (url: string, sql: string, values?: unknown[]) =>
    inTurn(async () => {
      await client.query(`SET search_path = ${new URL(url).searchParams.get("schema")}`);
      return client.query(sql, values);
    });
  return {
    newWorkspace() {
      const schema = `test_${process.pid}_${Math.floor(performance.now() * 1_000)}_${made.length}`;
      made.push(schema);
      return `${url}?schema=${schema}`;
    },
    empty: async (url) => void (await ask(url, emptied)),
    query: async (url, sql, values) => (await ask(url, sql, values)).rows,
    halt: () =>
      inTurn(async () => {
        await client.end();
        await mustBeOwn().halt();
      }),
    start: () =>
      inTurn(async () => {
        await mustBeOwn().start();
        client = await connectedTo(url);
      }),
    async close() {
      await inTurn(async () => {
        if (own === null)
          for (const schema of made)
            for (const end of ["", "_sandbox", "_queue", "_sandbox_queue"])
              await client.query(`DROP SCHEMA IF EXISTS ${schema}${end} CASCADE`);
      });
      await client.end();
      await own?.stop();
    },
  };
}

/**
 * Tables are emptied without their triggers, in any order; two have rows from the beginning. This costs the server a
 * tenth of what the making of a schema does.
 */
const emptied = `DO $$
DECLARE each RECORD;
BEGIN
  SET LOCAL session_replication_role = replica;
  FOR each IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema()
    AND tablename NOT IN ('schema_version', 'transitions', 'sequence') LOOP
    EXECUTE format('DELETE FROM %I', each.tablename);
  END LOOP;
  UPDATE sequence SET last = 0;
  FOR each IN SELECT sequencename FROM pg_sequences WHERE schemaname = current_schema() LOOP
    PERFORM setval(quote_ident(each.sequencename)::regclass, 1, false);
  END LOOP;
END $$`;

async function connectedTo(url: string): Promise<pg.Client> {
  const types = { getTypeParser: () => (text: string) => (/^-?\d+$/.test(text) ? Number(text) : text) };
  const client = new pg.Client({ connectionString: url, types });
  await client.connect();
  return client;
}
