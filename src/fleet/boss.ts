import type { DatabaseAddress } from "../store/postgres/address.js";
import { connected } from "../store/postgres/connection.js";

/** pg-boss, which keeps the queue, and its connection to the database. */
export type Boss = import("pg-boss").PgBoss;

/** The name of the queue. */
export const name = "archive";
/** A worker that is silent for this long has lost its jobs. pg-boss accepts no shorter time. */
export const leaseSeconds = 10;
/** How often a job whose worker was lost goes to another one. Then it has failed, and the run hands it out again later. */
export const leasesMax = 5;
/** Its queries are short: a longer silence (ms) means that the network was cut. The library hands this on to its driver. */
const patience = {
  connectionTimeoutMillis: 10_000,
  query_timeout: 30_000,
  keepAlive: true,
  allowExitOnIdle: true,
};

/** A download has limits of its own, which are shorter. */
const longestSeconds = 12 * 3_600;

/** Opens the queue, and makes it if it is new. */
export async function begun(
  { PgBoss }: typeof import("pg-boss"),
  address: DatabaseAddress,
  schema: string,
): Promise<Boss> {
  const boss = new PgBoss({
    ...patience,
    connectionString: address.url,
    schema,
    application_name: "bulkgen queue",
    max: 4,
    supervise: false,
    schedule: false,
    monitorIntervalSeconds: 1,
  });
  // The next call fails with the reason.
  boss.on("error", () => undefined);
  try {
    // A connection that the driver refuses itself would be left open by the library, and keep the process alive.
    await (await connected(address, "bulkgen queue")).end();
    await fill(boss, schema);
  } catch (error) {
    await boss.stop({ graceful: false }).catch(() => undefined);
    throw error;
  }
  return boss;
}

async function fill(boss: Boss, schema: string): Promise<void> {
  await boss.start();
  await boss.createQueue(name, {
    heartbeatSeconds: leaseSeconds,
    expireInSeconds: longestSeconds,
    retryLimit: leasesMax,
    retryDelay: 0,
  });
  await boss.getDb().executeSql(
    `BEGIN;
     SELECT pg_advisory_xact_lock(hashtextextended('${schema}', 3));
     CREATE TABLE IF NOT EXISTS ${schema}.workers (
       name TEXT PRIMARY KEY, entry JSONB NOT NULL, started TIMESTAMPTZ NOT NULL DEFAULT now(),
       seen TIMESTAMPTZ NOT NULL DEFAULT now(), sent_away BOOLEAN NOT NULL DEFAULT FALSE);
     COMMIT;`,
  );
}

/** Makes the queue again if it was dropped, or could not be made because the database was away. */
export class RenewedBoss {
  private current: Promise<Boss>;

  /** `onAnswer` is called after each call that the database has answered. */
  constructor(
    private readonly begin: () => Promise<Boss>,
    private readonly onAnswer: () => unknown,
  ) {
    this.current = begin();
  }

  opened(): Promise<unknown> {
    return this.current;
  }

  async with<Result>(act: (boss: Boss) => Promise<Result>): Promise<Result> {
    const used = this.current;
    const opened = await used.catch(() => null);
    try {
      if (opened !== null) {
        const result = await act(opened);
        void this.onAnswer();
        return result;
      }
    } catch (error) {
      if (!isGone(error)) throw error;
    }
    return act(await (used === this.current ? this.renewed() : this.current));
  }

  async ask(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    return this.with(async (boss) => (await boss.getDb().executeSql(text, values)).rows);
  }

  private renewed(): Promise<Boss> {
    const old = this.current;
    this.current = old
      .then((boss) => boss.stop({ graceful: false }))
      .catch(() => undefined)
      .then(this.begin);
    this.current.catch(() => undefined);
    return this.current;
  }

  async close(): Promise<void> {
    const boss = await this.current.catch(() => null);
    await boss?.stop({ graceful: false }).catch(() => undefined);
  }
}

/** Whether the schema or a table of it was dropped. */
function isGone(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  return code === "42P01" || code === "3F000" || /Queue \S+ does not exist/.test(message ?? "");
}
