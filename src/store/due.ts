import type { Due, Parked } from "../core/store.js";
import type { Sql } from "./open.js";

/**
 * What a run has to do soon. The loop asks this at every turn, of a few items and of many thousands, so each part reads
 * its own stretch of an index, in order, and no further than the limit. SQLite does not do so by itself where states
 * are joined by OR, and it plans a statement anew whenever a bare parameter after LIMIT is bound: hence the unions, and
 * the sums.
 */
const ofRun = "FROM items WHERE run_id = @runId AND state =";
const first = "LIMIT @limit + 0";

const time = "id, next_at AS nextAt";
const tasks = `
  SELECT ${time} ${ofRun} 'processing' UNION ALL SELECT ${time} ${ofRun} 'overdue'
  UNION ALL SELECT ${time} ${ofRun} 'ready' AND expired ORDER BY nextAt, id ${first}`;
const ready = `SELECT ${time} ${ofRun} 'ready' AND NOT expired ORDER BY next_at, id ${first}`;
const expired = `SELECT count(*) AS n ${ofRun} 'ready' AND expired`;
const isParked =
  "(model IN (SELECT value FROM json_each(@models)) OR price_group IN (SELECT value FROM json_each(@groups)))";
const planned = (condition: string) =>
  `SELECT ${time}, price, price_group AS "group" ${ofRun} 'planned' ${condition} ORDER BY priority DESC, position ${first}`;
const allPlanned = planned("");
const unparked = planned(`AND NOT ${isParked}`);
const parked = `SELECT count(*) AS n ${ofRun} 'planned' AND ${isParked}`;

/** At most `limit` items of each kind. */
export function due(sql: Sql, runId: number, limit: number, { models, groups }: Parked): Due {
  const nothingParked = models.length + groups.length === 0;
  const run = { runId };
  const head = { runId, limit };
  const kept = { models: JSON.stringify(models), groups: JSON.stringify(groups) };
  const count = (text: string, values: object) => (sql(text).get(values) as { n: number }).n;
  return {
    planned: nothingParked ? sql(allPlanned).all(head) : sql(unparked).all({ ...head, ...kept }),
    tasks: sql(tasks).all(head),
    ready: sql(ready).all(head),
    expired: count(expired, run),
    parked: nothingParked ? 0 : count(parked, { ...run, ...kept }),
  } as Due;
}
