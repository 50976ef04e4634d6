import { openPostgres, type PostgresOptions } from "./connect.js";

export interface ScheduledRunClaim {
  schedule: string;
  /** UTC ms. */
  dueAt: readonly number[];
  /** Its name, which no other daemon has. */
  daemon: string;
}

/**
 * Claims due times of a schedule. Returns those that another daemon has claimed before, with its name; the others belong
 * to this one, also when it asks again. Rejects with DatabaseTrouble, NewerDatabase, or PostgreSQL's error.
 */
export async function claimOnServer(
  options: PostgresOptions,
  { schedule, dueAt, daemon }: ScheduledRunClaim,
): Promise<Map<number, string>> {
  const { atomic, close, sql } = await openPostgres(options);
  const times = JSON.stringify(dueAt);
  try {
    const rows = await atomic(function* () {
      yield* sql(
        `INSERT INTO scheduled_runs (schedule, due_at, daemon)
         SELECT ?, CAST(value AS INTEGER), ? FROM json_each(?) ON CONFLICT DO NOTHING`,
      ).run(schedule, daemon, times);
      return yield* sql(
        `SELECT due_at AS dueAt, daemon FROM scheduled_runs
         WHERE schedule = ? AND daemon <> ? AND due_at IN (SELECT CAST(value AS INTEGER) FROM json_each(?))`,
      ).all(schedule, daemon, times);
    });
    return new Map((rows as Claimed[]).map((row) => [row.dueAt, row.daemon]));
  } finally {
    await close();
  }
}

interface Claimed {
  dueAt: number;
  daemon: string;
}
