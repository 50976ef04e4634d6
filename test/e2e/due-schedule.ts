import { join } from "node:path";
import { openSqlite, type Sqlite } from "../../src/sqlite.js";
import type { Place } from "./command.js";

/** Flags of a schedule that is due once a year. */
export const yearly = ["--cron", "0 0 1 1 *", "--tz", "UTC"];

/**
 * SQL after which every yearly schedule is due at once, for the daemon seems to have been off for a year: one scheduled run
 * is to be caught up, and no other comes due meanwhile.
 */
export const aYearAgo = `UPDATE schedules SET seen_until = seen_until - ${366 * 24 * 3_600_000}`;

export function withSchedules<Result>(place: Place, use: (db: Sqlite) => Result): Result {
  const db = openSqlite(join(place.folder, ".bulkgen", "schedules.db"));
  try {
    return use(db);
  } finally {
    db.close();
  }
}
