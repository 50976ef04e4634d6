import type { Client, QueryResult as PgResult, Pool, PoolClient } from "pg";
import type { Clock } from "../../clock.js";
import { nextTurn } from "../open.js";
import type { Database, Script } from "../script.js";
import type { DatabaseAddress } from "./address.js";
import { drop } from "./connection.js";
import { drive, GroupFailed, type WaitingScript } from "./groups.js";
import { Line, NetworkCut, unlessCut } from "./line.js";
import { explained } from "./trouble.js";

/** What has writers of its own, as it has files of its own in SQLite. */
export type Writes = "workspace" | "accounts" | "both";

/** The database whose connections these are. */
export interface OpenDatabase {
  address: DatabaseAddress;
  clock: Clock;
  /** Whether the clock follows that of the database's server yet. */
  isInStep: boolean;
}

/** The database's clock (UTC ms), which all machines go by. */
const shownNow = "floor(extract(epoch FROM clock_timestamp()) * 1000) AS now";
export const beginReading = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT ${shownNow}`;

export function beginWriting({ schema }: DatabaseAddress, writes: Writes): string {
  const turn = (number: number) => `pg_advisory_xact_lock(hashtextextended('${schema}', ${number}))`;
  const turns = { workspace: [turn(0)], accounts: [turn(4)], both: [turn(0), turn(4)] }[writes];
  return `BEGIN; SELECT ${turns.join(", ")}, ${shownNow}`;
}

/**
 * Runs the work in a transaction, if there is a text to begin one. `onBroken` is told of a connection that cannot even roll
 * back: the database rolls back by itself.
 */
export async function within<Result>(
  client: Pick<Client, "query">,
  opened: OpenDatabase,
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

/** Does work in a transaction over a connection of the pool; `begin` is the statement that opens it, null for none. */
export async function pooled<Result>(
  pool: Pool,
  opened: OpenDatabase,
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

/** Questions that are asked at the same time share a connection, and each has its own answer. */
export function asking(pool: Pool, opened: OpenDatabase): Database["ask"] {
  let waiting: WaitingScript[] = [];
  const askAll = async () => {
    const group = waiting;
    waiting = [];
    const answer = ({ script, resolve, reject }: WaitingScript, line: Line) =>
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
