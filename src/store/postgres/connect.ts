import type { Clock } from "../../clock.js";
import { plainReason, type Reason, reasonKinds } from "../../core/reason.js";
import type { Database, Queries, Script } from "../script.js";
import type { DatabaseAddress } from "./address.js";
import { connected, endClient, ended, poolOf } from "./connection.js";
import { drive, inGroups, runGroup } from "./groups.js";
import { Line } from "./line.js";
import { postgresQueries } from "./queries.js";
import {
  asking,
  beginReading,
  beginWriting,
  type OpenDatabase,
  pooled,
  type Writes,
  within,
} from "./transaction.js";
import { explained } from "./trouble.js";

export interface PostgresDatabase extends Database {
  close(): Promise<void>;
}

export interface PostgresOptions {
  address: DatabaseAddress;
  clock: Clock;
  /** Also a database whose state was moved elsewhere: for the move itself. */
  evenIfMoved?: boolean;
  /** What is written; the workspace by default. */
  writes?: Writes;
}

/** Opens a workspace on PostgreSQL, made or migrated. Rejects with DatabaseTrouble, NewerDatabase, or PostgreSQL's error. */
export async function openPostgres({
  address,
  clock,
  writes = "workspace",
}: PostgresOptions): Promise<PostgresDatabase> {
  const pool = await poolOf(address, false);
  const opened: OpenDatabase = { address, clock, isInStep: false };
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
  /** Why the run waits, if it does. */
  reason?: Reason | null;
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
  const opened: OpenDatabase = { address, clock, isInStep: false };
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

/** Who has the lock of an open database, and since when (UTC ms); null if nobody has. */
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
  const [, pid, host = "", run, kind, until] =
    /^bulkgen (\d+)@(\S*)(?: run (\d+))?(?: ([a-z]+)(?::([0-9a-z]+))?)?$/.exec(row.name) ?? [];
  const reason = reasonKinds.find((known) => known === kind);
  return {
    pid: Number(pid),
    host,
    run: run === undefined ? null : Number(run),
    since: Math.floor(row.since),
    reason: reason === undefined ? null : plainReason(reason, until === undefined ? null : secondsIn(until)),
  };
}

/** The name of a connection, of which PostgreSQL keeps 63 bytes: of a reason, its kind and its end. */
function nameOf({ pid, host, run, reason }: LockHolder): string {
  const end = reason?.until == null ? "" : `:${Math.ceil(reason.until / 1_000).toString(36)}`;
  const rest = `${run === null ? "" : ` run ${run}`}${reason == null ? "" : ` ${reason.kind}${end}`}`;
  const start = `bulkgen ${pid}@`;
  const name = host.replace(/[^\w.-]/g, "_").slice(0, Math.min(32, nameBytes - start.length - rest.length));
  return start + name + rest;
}

const nameBytes = 63;

/** UTC ms. */
function secondsIn(text: string): number {
  return Number.parseInt(text, 36) * 1_000;
}

function lockKey({ schema }: DatabaseAddress): string {
  return `hashtextextended('${schema}', 2)`;
}
