import type { Client, ClientConfig, QueryResult as PgResult, Pool, PoolClient } from "pg";
import type { Clock } from "../../clock.js";
import { DatabaseTrouble } from "../open.js";
import type { Database, PendingQuery, Queries, Query, QueryResult, Script } from "../script.js";
import type { DatabaseAddress } from "./address.js";
import { bound, type Translation, translated } from "./dialect.js";
import { migrate } from "./schema.js";
import { driver, explained } from "./trouble.js";

export interface PostgresDatabase extends Database {
  close(): Promise<void>;
}

export interface PostgresOptions {
  address: DatabaseAddress;
  clock: Clock;
  /** Also a database whose state was moved elsewhere: for the move itself. */
  evenIfMoved?: boolean;
}

/** Connections of one opened database. */
const connectionsMax = 10;
/** Milliseconds after which an attempt to connect has failed. */
const connectMs = 10_000;
/**
 * After so many milliseconds without an answer the server is asked over another connection whether it is there. A query may
 * take long, or wait for another writer; but on a network that was cut, the system would wait for a quarter of an hour.
 */
const patienceMs = 20_000;

/** Milliseconds that a server is given to end a connection. On a network that was cut it never does. */
const endMs = 5_000;

/** Waits until connections have ended. Those that do not are left: they do not keep the process alive. */
export async function ended(end: Promise<unknown>, clock: Clock): Promise<void> {
  const over = new AbortController();
  await Promise.race([end, clock.sleep(endMs, over.signal)]);
  over.abort("ended");
}

/** Ends a connection. One that does not end does not keep the process alive. */
export async function endClient(client: Client): Promise<void> {
  // The driver's types do not have it.
  (client as Client & { unref(): void }).unref();
  await client.end();
}

/** Opens a workspace on PostgreSQL, made or migrated. Rejects with DatabaseTrouble, NewerDatabase, or PostgreSQL's error. */
export async function openPostgres({ address, clock }: PostgresOptions): Promise<PostgresDatabase> {
  const pool = await poolOf(address, false);
  return {
    sql: postgresQueries(),
    clock,
    // One writer at a time, as in SQLite: what the store's scripts decide by what they have read stays true until their end.
    atomic: inGroups((group) =>
      pooled(pool, { address, clock }, beginWriting(address), (asking) => runGroup(asking, group, address)),
    ),
    read: (script) => pooled(pool, { address, clock }, beginReading, (asking) => drive(asking, script())),
    ask: (script) => pooled(pool, { address, clock }, null, (asking) => drive(asking, script())),
    close: () => ended(pool.end(), clock),
  };
}

/** Who has the lock of a workspace on PostgreSQL. */
export interface LockHolder {
  pid: number;
  host: string;
  run: number | null;
}

export interface LockedPostgres extends PostgresDatabase {
  /** Says who has the lock, to those who ask. */
  says(holder: LockHolder): Promise<void>;
  release(): Promise<void>;
}

/**
 * Opens a workspace with its lock; null if another process has it. The lock belongs to a connection, and all writes go
 * over that connection: if it is lost, another process may take the lock, and this one cannot write any more.
 */
export async function lockPostgres(
  { address, clock, evenIfMoved = false }: PostgresOptions,
  holder: LockHolder,
): Promise<LockedPostgres | null> {
  const pool = await poolOf(address, evenIfMoved);
  const client = await connected(address, nameOf(holder)).catch(async (error: unknown) => {
    await pool.end();
    throw error;
  });
  const release = () => ended(Promise.all([endClient(client), pool.end()]), clock);
  const { rows } = await client
    .query(`SELECT pg_try_advisory_lock(${lockKey(address)}) AS taken`)
    .catch(async (error: unknown) => {
      await release();
      throw explained(error, address);
    });
  if (rows[0]?.["taken"] !== 1) {
    await release();
    return null;
  }
  let lost: Error | null = null;
  client.on("error", (error) => {
    lost ??= error;
  });
  let last: Promise<unknown> = Promise.resolve();
  /** One after the other: they share the connection. */
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const turn = last.then(work);
    last = turn.catch(() => undefined);
    return turn;
  };
  return {
    sql: postgresQueries(),
    clock,
    atomic: inGroups((group) =>
      inTurn(async () => {
        if (lost !== null) throw explained(lost, address);
        const run = (asking: Asking) => runGroup(asking, group, address);
        return within(client, { address, clock }, beginWriting(address), run, (error) => {
          lost ??= error;
        });
      }),
    ),
    // Others connect again by themselves. A process that waits for nothing but them would not hear that its lock is gone.
    async read(script) {
      if (lost !== null) throw explained(lost, address);
      return pooled(pool, { address, clock }, beginReading, (asking) => drive(asking, script()));
    },
    async ask(script) {
      if (lost !== null) throw explained(lost, address);
      return pooled(pool, { address, clock }, null, (asking) => drive(asking, script()));
    },
    says: (said) =>
      inTurn(async () => {
        await client
          .query(`SELECT set_config('application_name', $1, false)`, [nameOf(said)])
          .catch((error: unknown) => {
            throw explained(error, address);
          });
      }),
    close: async () => undefined,
    release: () => inTurn(release),
  };
}

/** Who has the lock now, and since when (UTC ms); null if nobody has. */
export async function holderOf(address: DatabaseAddress): Promise<(LockHolder & { since: number }) | null> {
  const client = await connected(address, "bulkgen");
  try {
    return await drive((text, values) => client.query(text, values), holder(postgresQueries(), address));
  } finally {
    await client.end();
  }
}

/** The same, asked of an open database. */
export function* holder(
  sql: Queries,
  address: DatabaseAddress,
): Script<(LockHolder & { since: number }) | null> {
  const row = (yield* sql(
    `SELECT a.application_name AS name, extract(epoch FROM a.backend_start) * 1000 AS since
     FROM pg_locks l JOIN pg_stat_activity a USING (pid)
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND (CAST(l.classid AS BIGINT) << 32) | CAST(l.objid AS BIGINT) = ${lockKey(address)}`,
  ).get()) as { name: string; since: number } | undefined;
  if (row === undefined) return null;
  const [, pid, host = "", run] = /^bulkgen (\d+)@(\S*)(?: run (\d+))?$/.exec(row.name) ?? [];
  return {
    pid: Number(pid),
    host,
    run: run === undefined ? null : Number(run),
    since: Math.floor(row.since),
  };
}

/** The name of a connection, of which PostgreSQL keeps 63 bytes. */
function nameOf({ pid, host, run }: LockHolder): string {
  const name = host.replace(/[^\w.-]/g, "_").slice(0, 32);
  return `bulkgen ${pid}@${name}${run === null ? "" : ` run ${run}`}`;
}

function lockKey({ schema }: DatabaseAddress): string {
  return `hashtextextended('${schema}', 2)`;
}

/** The database's clock (UTC ms), which all machines go by. */
const shownNow = "floor(extract(epoch FROM clock_timestamp()) * 1000) AS now";
const beginReading = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT ${shownNow}`;

function beginWriting({ schema }: DatabaseAddress): string {
  return `BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('${schema}', 0)), ${shownNow}`;
}

/** Its connections are made when they are needed. The first makes the schema. */
async function poolOf(address: DatabaseAddress, evenIfMoved: boolean): Promise<Pool> {
  const { Pool: OpenPool } = await driver();
  const pool = new OpenPool({
    ...settingsOf(address, "bulkgen"),
    max: connectionsMax,
    allowExitOnIdle: true,
  });
  // Of a connection that nobody uses: the next query gets another, or fails with the reason.
  pool.on("error", () => undefined);
  // Of one in use: the query that it has, or its next, fails with the reason.
  pool.on("connect", (client) => client.on("error", () => undefined));
  try {
    await migrate(pool, { ...address, evenIfMoved });
    return pool;
  } catch (error) {
    await pool.end();
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
    throw explained(error, address);
  }
}

function settingsOf({ url, schema }: DatabaseAddress, name: string): ClientConfig {
  return {
    connectionString: url,
    connectionTimeoutMillis: connectMs,
    // A machine that is gone must not keep the lock: the server asks whether it is there, and waits as long for an answer
    // that was under way, for which it does not ask.
    options: `-c search_path=${schema} -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=25000`,
    // And this machine, whether the server is.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: name,
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

type Opened = Pick<PostgresOptions, "address" | "clock">;

async function pooled<Result>(
  pool: Pool,
  opened: Opened,
  begin: string | null,
  work: (asking: Asking) => Promise<Result>,
): Promise<Result> {
  let client: PoolClient;
  try {
    client = await pool.connect();
  } catch (error) {
    throw explained(error, opened.address);
  }
  let broken = false;
  try {
    return await within(client, opened, begin, work, () => {
      broken = true;
    });
  } finally {
    client.release(broken);
  }
}

/**
 * Runs the work in a transaction, if there is a text to begin one. `onBroken` is told of a connection that cannot even roll
 * back: the database rolls back by itself.
 */
async function within<Result>(
  client: Pick<Client, "query">,
  opened: Opened,
  begin: string | null,
  work: (asking: Asking) => Promise<Result>,
  onBroken: (error: Error) => void,
): Promise<Result> {
  const { address, clock } = opened;
  const asking: Asking = (text, values) =>
    answered(
      values === undefined ? client.query(text) : client.query({ name: nameOfQuery(text), text, values }),
      opened,
    );
  try {
    if (begin === null) return await work(asking);
    const asked = clock.monotonic();
    const [, shown] = (await asking(begin)) as unknown as PgResult<{ now: number }>[];
    if (shown?.rows[0] !== undefined) clock.follow?.(shown.rows[0].now, clock.monotonic() - asked);
    const result = await work(asking);
    await asking("COMMIT");
    return result;
  } catch (error) {
    if (error instanceof NetworkCut) onBroken(error);
    else if (begin !== null) await asking("ROLLBACK").catch(onBroken);
    throw explained(error, address);
  }
}

/** The server plans a query with a name once for each connection. */
const queryNames = new Map<string, string>();

function nameOfQuery(text: string): string {
  const name = queryNames.get(text) ?? `query_${queryNames.size + 1}`;
  queryNames.set(text, name);
  return name;
}

type Asking = (text: string, values?: unknown[]) => Promise<PgResult>;

class NetworkCut extends DatabaseTrouble {}

function isSaidByServer(error: unknown): boolean {
  return (error as { severity?: string } | undefined)?.severity !== undefined;
}

/** The answer to a query. Rejects with NetworkCut where there is none, and the server cannot be reached any more. */
async function answered<Answer>(query: Promise<Answer>, { address, clock }: Opened): Promise<Answer> {
  const over = new AbortController();
  const done = () => over.abort("answered");
  query.then(done, done);
  for (;;) {
    await Promise.race([query, clock.sleep(patienceMs, over.signal)]);
    if (over.signal.aborted) return query;
    try {
      await (await connected(address, "bulkgen")).end();
    } catch (error) {
      // A server that says why it takes no connection, such as too many of them, is there.
      if (error instanceof DatabaseTrouble && !isSaidByServer(error.cause))
        throw new NetworkCut(error.message, error.todo, { cause: error });
    }
  }
}

interface WaitingScript {
  script(): Script<unknown>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * Scripts that come in while others are run share the next transaction, and with it the round trips of its ends and its
 * sync. `run` runs the transaction and returns a function that tells each script's caller how it ended; where it rejects, all
 * callers get its error.
 */
function inGroups(run: (group: readonly WaitingScript[]) => Promise<() => void>): Database["atomic"] {
  let waiting: WaitingScript[] = [];
  let isRunning = false;
  const runAll = async () => {
    isRunning = true;
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        const tell = await run(group);
        tell();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    isRunning = false;
  };
  return <Result>(script: () => Script<Result>) =>
    new Promise<Result>((resolve, reject) => {
      waiting.push({ script, resolve: resolve as (result: unknown) => void, reject });
      if (!isRunning) void runAll();
    });
}

/** Each script is a savepoint of its own, so that one that throws undoes only itself. */
async function runGroup(
  asking: Asking,
  group: readonly WaitingScript[],
  address: DatabaseAddress,
): Promise<() => void> {
  const [only] = group;
  if (only !== undefined && group.length === 1) {
    const result = await drive(asking, only.script());
    return () => only.resolve(result);
  }
  const ends: (() => void)[] = [];
  for (const [index, { script, resolve, reject }] of group.entries()) {
    await asking(index === 0 ? "SAVEPOINT script" : "RELEASE SAVEPOINT script; SAVEPOINT script");
    try {
      const result = await drive(asking, script());
      ends.push(() => resolve(result));
    } catch (error) {
      if (error instanceof NetworkCut) throw error;
      await asking("ROLLBACK TO SAVEPOINT script");
      ends.push(() => reject(explained(error, address)));
    }
  }
  return () => {
    for (const end of ends) end();
  };
}

/** Runs a script from answer to answer. */
async function drive<Result>(asking: Asking, script: Script<Result>): Promise<Result> {
  let step = script.next();
  while (!step.done) {
    let result: QueryResult;
    try {
      const { rows, rowCount } = await asking(step.value.text, step.value.values);
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
