import { Socket } from "node:net";
import type { Client, ClientConfig, Pool } from "pg";
import type { Clock } from "../../clock.js";
import type { DatabaseAddress } from "./address.js";
import { migrate } from "./schema.js";
import { driver, explained } from "./trouble.js";

/** Connections of one opened database. */
const connectionsMax = 10;
/** Milliseconds after which an attempt to connect has failed. */
const connectMs = 10_000;
/** Milliseconds that a server is given to end a connection. On a network that was cut it never does. */
const endMs = 5_000;

/** The connections to a database, which are made when they are needed. The first makes the schema. */
export async function poolOf(address: DatabaseAddress, evenIfMoved: boolean): Promise<Pool> {
  const { Pool: OpenPool } = await driver();
  let newest = new Socket();
  const pool = new OpenPool({
    ...settingsOf(address, "bulkgen"),
    stream: () => {
      newest = new Socket();
      return newest;
    },
    max: connectionsMax,
    allowExitOnIdle: true,
  });
  // An error of an unused connection: the next query gets another connection, or fails with the reason.
  pool.on("error", () => undefined);
  // An error of a connection in use: its current or next query fails with the reason.
  pool.on("connect", (client) => client.on("error", () => undefined));
  try {
    await migrate(pool, { ...address, evenIfMoved });
    return pool;
  } catch (error) {
    await pool.end();
    // The driver leaves open a connection that it has refused itself, which would keep the process alive.
    newest.destroy();
    throw explained(error, address);
  }
}

/** A connection of its own. If it is lost, its next query fails with the reason. */
export async function connected(address: DatabaseAddress, name: string): Promise<Client> {
  const { Client: OpenClient } = await driver();
  const client = new OpenClient(settingsOf(address, name));
  client.on("error", () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    drop(client);
    throw explained(error, address);
  }
}

function settingsOf({ url, schema }: DatabaseAddress, name: string): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    // A machine that is gone must not keep the lock: the server checks whether the machine is there. While it sends an
    // answer it does not check, so it waits only as long for the acknowledgement.
    options: `-c search_path=${schema} -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=25000`,
    // This machine also checks whether the server is there.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: name,
    // A query is sent before the previous one is answered.
    pipeline: true,
    types: { getTypeParser: parserOf },
  };
}

/** PostgreSQL's numbers of types. */
const types = { bool: 16, int8: 20, int2: 21, int4: 23, oid: 26, float4: 700, float8: 701, numeric: 1700 };
const numbers: readonly number[] = [
  types.int2,
  types.int4,
  types.int8,
  types.oid,
  types.float4,
  types.float8,
  types.numeric,
];

/** Values as SQLite gives them: numbers that fit into a double, and truth as 1 or 0. */
function parserOf(type: number): (text: string) => unknown {
  if (type === types.bool) return (text) => (text === "t" ? 1 : 0);
  return numbers.includes(type) ? Number : (text) => text;
}

/** Waits until connections have ended. Connections that do not end are left, and do not keep the process alive. */
export async function ended(end: Promise<unknown>, clock: Clock): Promise<void> {
  const over = new AbortController();
  await Promise.race([end, clock.sleep(endMs, over.signal)]);
  over.abort("ended");
}

/** Ends a connection. If it does not end, it does not keep the process alive. */
export async function endClient(client: Client): Promise<void> {
  // The driver's types do not have it.
  (client as Client & { unref(): void }).unref();
  await client.end();
}

/** Closes a connection over a network that was cut: the driver would wait for its answers, and keep the process alive. */
export function drop(client: Pick<Client, "query">): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
