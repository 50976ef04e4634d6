import { Socket } from "node:net";
import type { Client, ClientConfig, QueryResult as PgResult, Pool, PoolClient } from "pg";
import type { Clock } from "../../clock.js";
import { DatabaseTrouble, nextTurn } from "../open.js";
import type { Apart, Database, PendingQuery, Queries, Query, QueryResult, Script } from "../script.js";
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
  /** What is written; the workspace by default. */
  writes?: Written;
}

/** What has writers of its own, as it has files of its own in SQLite. */
type Written = "workspace" | "accounts" | "both";

/** Connections of one opened database. */
const connectionsMax = 10;
/** Milliseconds after which an attempt to connect has failed. */
const connectMs = 10_000;
/**
 * After this many milliseconds without an answer, bulkgen asks the server over another connection whether it is there.
 * A query may take long, or wait for another writer; but on a network that was cut, the system would wait for a quarter
 * of an hour.
 */
const patienceMs = 20_000;
/** Milliseconds between two checks whether answers come. */
const checkMs = 5_000;

/** Milliseconds that a server is given to end a connection. On a network that was cut it never does. */
const endMs = 5_000;

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
function drop(client: Pick<Client, "query">): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}

/** Opens a workspace on PostgreSQL, made or migrated. Rejects with DatabaseTrouble, NewerDatabase, or PostgreSQL's error. */
export async function openPostgres({
  address,
  clock,
  writes = "workspace",
}: PostgresOptions): Promise<PostgresDatabase> {
  const pool = await poolOf(address, false);
  const opened: Opened = { address, clock, isInStep: false };
  return {
    sql: postgresQueries(),
    clock,
    // One writer at a time, as in SQLite: what the store's scripts decide by what they have read stays true until their end.
    atomic: inGroups((group) =>
      pooled(pool, opened, beginWriting(address, writes), (line) => runGroup(line, group)),
    ),
    read: (script) => pooled(pool, opened, beginReading, (line) => drive(line, script())),
    ask: asking(pool, opened),
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
  { address, clock, evenIfMoved = false, writes = "workspace" }: PostgresOptions,
  holder: LockHolder,
): Promise<LockedPostgres | null> {
  const pool = await poolOf(address, evenIfMoved);
  const opened: Opened = { address, clock, isInStep: false };
  const ask = asking(pool, opened);
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
        const run = (line: Line) => runGroup(line, group);
        return within(client, opened, beginWriting(address, writes), run, (error) => {
          lost ??= error;
        });
      }),
    ),
    // The pool's connections reconnect by themselves, so a process that only reads would not notice that its lock is gone.
    async read(script) {
      if (lost !== null) throw explained(lost, address);
      return pooled(pool, opened, beginReading, (line) => drive(line, script()));
    },
    async ask(script) {
      if (lost !== null) throw explained(lost, address);
      return ask(script);
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

/** Whether the database takes no writes now. */
export async function takesNoWrites(address: DatabaseAddress): Promise<boolean> {
  const client = await connected(address, "bulkgen");
  try {
    const { rows } = await client.query("SELECT current_setting('transaction_read_only') AS set");
    return rows[0]?.["set"] === "on";
  } finally {
    await client.end();
  }
}

/** Who has the lock now, and since when (UTC ms); null if nobody has. */
export async function holderOf(address: DatabaseAddress): Promise<(LockHolder & { since: number }) | null> {
  const client = await connected(address, "bulkgen");
  try {
    return await drive(new Line(client), holder(postgresQueries(), address));
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

function beginWriting({ schema }: DatabaseAddress, writes: Written): string {
  const turn = (number: number) => `pg_advisory_xact_lock(hashtextextended('${schema}', ${number}))`;
  const turns = { workspace: [turn(0)], accounts: [turn(4)], both: [turn(0), turn(4)] }[writes];
  return `BEGIN; SELECT ${turns.join(", ")}, ${shownNow}`;
}

/** Its connections are made when they are needed. The first makes the schema. */
async function poolOf(address: DatabaseAddress, evenIfMoved: boolean): Promise<Pool> {
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

interface Opened extends Pick<PostgresOptions, "address" | "clock"> {
  /** Whether the clock follows that of the database's server yet. */
  isInStep: boolean;
}

/** Questions that are asked at the same time share a connection, and each has its own answer. */
function asking(pool: Pool, opened: Opened): Database["ask"] {
  let waiting: Pick<WaitingScript, "script" | "resolve" | "reject">[] = [];
  const askAll = async () => {
    const group = waiting;
    waiting = [];
    const answer = ({ script, resolve, reject }: (typeof group)[number], line: Line) =>
      drive(line, script()).then(resolve, (error: unknown) => reject(explained(error, opened.address)));
    await pooled(pool, opened, null, (line) => Promise.all(group.map((one) => answer(one, line)))).catch(
      (error: unknown) => {
        for (const { reject } of group) reject(error);
      },
    );
  };
  return <Result>(script: () => Script<Result>) =>
    new Promise<Result>((resolve, reject) => {
      waiting.push({ script, resolve: resolve as (result: unknown) => void, reject });
      if (waiting.length === 1) nextTurn(() => void askAll());
    });
}

async function pooled<Result>(
  pool: Pool,
  opened: Opened,
  begin: string | null,
  work: (line: Line) => Promise<Result>,
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
  work: (line: Line) => Promise<Result>,
  onBroken: (error: Error) => void,
): Promise<Result> {
  const line = new Line(client);
  const run = async () => {
    if (begin === null) return work(line);
    const { clock } = opened;
    const asked = clock.monotonic();
    line.tell(begin, undefined, (answer) => {
      const [, shown] = answer as unknown as PgResult<{ now: number }>[];
      if (shown?.rows[0] !== undefined) clock.follow?.(shown.rows[0].now, clock.monotonic() - asked);
      opened.isInStep = true;
    });
    // A reader asks on at once, unless the server's time is not known yet, and does not wait for its transaction to end.
    if (begin !== beginReading || !opened.isInStep) await line.allAnswered();
    const result = await work(line);
    if (begin === beginReading) line.tell("COMMIT");
    else await line.ask("COMMIT");
    return result;
  };
  try {
    return await unlessCut(line, run(), opened);
  } catch (error) {
    if (error instanceof NetworkCut) {
      onBroken(error);
      drop(client);
    } else if (begin !== null) await unlessCut(line, line.rollBack(), opened).catch(onBroken);
    throw error instanceof GroupFailed ? error : explained(error, opened.address);
  }
}

/** What is asked over one connection, which answers in the order of the questions. */
class Line {
  /** How many answers came until now. */
  answers = 0;
  /** Questions without an answer. */
  open = 0;
  private cut: NetworkCut | null = null;
  /** The error of the first failed query for which nobody waited: later queries fail too. */
  private failure: unknown = null;
  private told: Promise<unknown> = Promise.resolve();

  constructor(private readonly client: Pick<Client, "query">) {}

  /** Waits for the answer. If an earlier question failed, rejects with its error. */
  ask(text: string, values?: unknown[]): Promise<PgResult> {
    return this.send(text, values).catch((error: unknown) => {
      throw this.failure ?? error;
    });
  }

  /** Asks without waiting: what is asked next is on its way at the same time. */
  tell(text: string, values?: unknown[], onAnswer?: (answer: PgResult) => void): void {
    this.told = this.send(text, values).then(onAnswer, (error: unknown) => {
      this.failure ??= error;
    });
  }

  /** Resolves when all that was told is answered; rejects if some of it has failed. */
  async allAnswered(): Promise<void> {
    await this.told;
    if (this.failure !== null) throw this.failure;
  }

  /** Rolls back, whatever has failed. Rejects where the connection is lost. */
  async rollBack(): Promise<void> {
    await this.send("ROLLBACK");
  }

  /** Sends no more queries: all callers were told that the connection is lost. */
  end(cut: NetworkCut): void {
    this.cut = cut;
  }

  private async send(text: string, values?: unknown[]): Promise<PgResult> {
    if (this.cut !== null) throw this.cut;
    this.open++;
    try {
      return await this.client.query(
        values === undefined ? { text } : { name: nameOfQuery(text), text, values },
      );
    } finally {
      this.open--;
      this.answers++;
    }
  }
}

/** The server plans a query with a name once for each connection. */
const queryNames = new Map<string, string>();

function nameOfQuery(text: string): string {
  let name = queryNames.get(text);
  if (name === undefined) {
    name = `query_${queryNames.size + 1}`;
    queryNames.set(text, name);
  }
  return name;
}

class NetworkCut extends DatabaseTrouble {}

function isSaidByServer(error: unknown): boolean {
  return (error as { severity?: string } | undefined)?.severity !== undefined;
}

/** Rejects with NetworkCut if a question stays without an answer, and the server cannot be reached any more. */
async function unlessCut<Result>(
  line: Line,
  work: Promise<Result>,
  { address, clock }: Opened,
): Promise<Result> {
  const over = new AbortController();
  const done = () => over.abort("done");
  work.then(done, done);
  let seen = line.answers;
  let silentMs = 0;
  for (;;) {
    await Promise.race([work, clock.sleep(checkMs, over.signal)]);
    if (over.signal.aborted) return work;
    silentMs = line.answers === seen ? silentMs + checkMs : 0;
    seen = line.answers;
    if (silentMs < patienceMs) continue;
    silentMs = 0;
    try {
      await (await connected(address, "bulkgen")).end();
    } catch (error) {
      // A server that says why it takes no connection, such as too many of them, is there.
      if (!(error instanceof DatabaseTrouble) || isSaidByServer(error.cause)) continue;
      const cut = new NetworkCut(error.message, error.todo, { cause: error });
      line.end(cut);
      throw cut;
    }
  }
}

interface WaitingScript {
  script(): Script<unknown>;
  isOnce: boolean;
  part: Apart["part"] | null;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** A transaction that was rolled back because one of its scripts failed. */
class GroupFailed extends Error {}

/**
 * Scripts that come in while others are run share the next transaction, and with it the round trips of its ends and its
 * sync. `run` runs the transaction and returns a function that tells each script's caller how it ended. Where one of them
 * fails, each is run again in a transaction of its own, so that it fails alone; where the transaction itself fails, all
 * callers get its error.
 */
function inGroups(run: (group: readonly WaitingScript[]) => Promise<() => void>): Database["atomic"] {
  const waiting: WaitingScript[] = [];
  let isRunning = false;
  const runNow = async (group: readonly WaitingScript[]): Promise<void> => {
    try {
      const tell = await run(group);
      tell();
    } catch (error) {
      if (error instanceof GroupFailed) for (const one of group) await runNow([one]);
      else for (const { reject } of group) reject(error);
    }
  };
  const runAll = async () => {
    isRunning = true;
    while (waiting.length > 0) {
      const alone = waiting.findIndex(({ isOnce }) => isOnce);
      await runNow(waiting.splice(0, alone < 0 ? waiting.length : Math.max(1, alone)));
    }
    isRunning = false;
  };
  return <Result>(script: () => Script<Result>, how?: "once" | Apart) =>
    new Promise<Result>((resolve, reject) => {
      const isOnce = how === "once";
      const part = typeof how === "object" ? how.part : null;
      waiting.push({ script, isOnce, part, resolve: resolve as (result: unknown) => void, reject });
      if (!isRunning) void runAll();
    });
}

async function runGroup(line: Line, group: readonly WaitingScript[]): Promise<() => void> {
  const ends: (() => void)[] = [];
  try {
    for (const batch of sideBySide(group)) {
      const turns = batch.length === 1 ? null : new Turns(batch.length);
      const running = batch.map(async ({ script, resolve }) => {
        const result = await drive(line, script(), turns).finally(() => turns?.leave());
        ends.push(() => resolve(result));
      });
      // If one fails, the others still ask on: wait for all of them before the transaction ends.
      const failed = (await Promise.allSettled(running)).find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    }
    await line.allAnswered();
  } catch (error) {
    throw group.length === 1 || error instanceof NetworkCut ? error : new GroupFailed();
  }
  return () => {
    for (const end of ends) end();
  };
}

/** Neighbours that may run side by side, in the order in which they came. */
function sideBySide(group: readonly WaitingScript[]): WaitingScript[][] {
  const batches: WaitingScript[][] = [];
  let parts = new Set<unknown>();
  for (const one of group) {
    const joins = one.part !== null && parts.size > 0 && !parts.has(one.part) && !parts.has(null);
    if (joins) batches.at(-1)?.push(one);
    else {
      batches.push([one]);
      parts = new Set();
    }
    parts.add(one.part);
  }
  return batches;
}

/** Scripts that run side by side: those that want to be alone wait until the others have ended or wait too. */
class Turns {
  private readonly waiting: (() => void)[] = [];

  constructor(private running: number) {}

  async alone(): Promise<void> {
    const turn = new Promise<void>((resolve) => this.waiting.push(resolve));
    this.leave();
    await turn;
  }

  leave(): void {
    if (--this.running > 0) return;
    const next = this.waiting.shift();
    if (next === undefined) return;
    this.running = 1;
    next();
  }
}

/** Questions on their way at once: a script may tell a million, and what waits is in memory. */
const openMax = 200;

/** Runs a script from answer to answer. */
async function drive<Result>(
  line: Line,
  script: Script<Result>,
  turns: Turns | null = null,
): Promise<Result> {
  let step = script.next();
  while (!step.done) {
    const { text, values, isTold, isAlone } = step.value;
    let result: QueryResult = { rows: [], changes: 0 };
    try {
      if (isAlone) await turns?.alone();
      else if (isTold) {
        line.tell(text, values);
        if (turns === null && line.open >= openMax) await line.allAnswered();
      } else {
        const { rows, rowCount } = await line.ask(text, values);
        result = { rows, changes: rowCount ?? 0 };
      }
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
    yield { ...this.ask(values), isTold: true };
  }

  *changes(...values: unknown[]) {
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
