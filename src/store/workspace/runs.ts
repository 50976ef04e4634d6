import { paidStates, uncollectedStates } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Job, NewItem, Run, RunChange, RunStart } from "../../core/ports/store.js";
import { type InTransaction, listed, type Script } from "../script.js";
import { enroll } from "./enroll.js";
import { absolutePath, keptPath } from "./own-paths.js";
import { applyTransition, type RootedDatabase } from "./transition.js";

const owes = `EXISTS (
    SELECT 1 FROM run_states AS s WHERE s.run_id = runs.id AND s.items > 0 AND s.state IN (${listed(uncollectedStates)}))`;
const select = `
  SELECT runs.id, job_id AS jobId, jobs.name AS jobName, state, manifest, origin, account_id AS accountId, edition,
    out_folder AS outFolder, options, started_at AS startedAt, ended_at AS endedAt, exit, ending, requests, arranged, ${owes} AS owes
  FROM runs JOIN jobs ON jobs.id = runs.job_id`;
// The order matters: the other runs may have few items, or there may be none.
const madeElsewhere = `
  SELECT count(*) AS items, coalesce(sum(left_over.price), 0) AS credits, min(left_over.row_id) AS rowId,
    min(jobs.name) AS jobName
  FROM runs CROSS JOIN runs other ON other.job_id <> runs.job_id AND coalesce(other.ended_at, runs.started_at) >= runs.started_at
    CROSS JOIN items made ON made.run_id = other.id
      AND made.state IN (${listed(paidStates)})
    CROSS JOIN items left_over ON left_over.job_id = runs.job_id AND left_over.key = made.key
    JOIN jobs ON jobs.id = other.job_id
  WHERE runs.id = @runId AND left_over.run_id = runs.id AND left_over.state IN ('planned', 'blocked')
    AND EXISTS (SELECT 1 FROM attempts WHERE item_id = made.id AND intended_at >= runs.started_at)`;
const unfinished = "runs.state IN ('running', 'paused', 'interrupted')";

export interface MadeElsewhere {
  items: number;
  credits: Credits;
  rowId: string;
  jobName: string;
}

export function runChanges(connection: Pick<RootedDatabase, "sql" | "clock" | "root">) {
  const { sql, clock, root } = connection;
  return {
    *startRun(jobId: number, start: RunStart, number?: number): Script<Run> {
      const open = yield* oneRun(
        connection,
        `WHERE job_id = ? AND edition = ? AND account_id = ? AND origin = ? AND ${unfinished}
           ORDER BY runs.id DESC LIMIT 1`,
        jobId,
        start.edition,
        start.accountId,
        start.origin,
      );
      const values = {
        jobId,
        ...start,
        manifest: keptPath(root, start.manifest),
        outFolder: keptPath(root, start.outFolder),
        options: JSON.stringify(start.options),
        now: clock.now(),
        id:
          open?.id ?? number ?? ((yield* sql("SELECT coalesce(max(id), 0) + 1 FROM runs").value()) as number),
      };
      yield* sql(
        `INSERT INTO runs (id, job_id, state, manifest, origin, account_id, edition, out_folder, options, started_at)
           VALUES (@id, @jobId, 'running', @manifest, @origin, @accountId, @edition, @outFolder, @options, @now)
           ON CONFLICT (id) DO UPDATE SET state = 'running', manifest = @manifest, out_folder = @outFolder,
             options = @options, exit = NULL, ending = NULL, ended_at = NULL, arranged = 0`,
      ).run(values);
      return (yield* oneRun(connection, "WHERE runs.id = ?", values.id)) as Run;
    },

    *setRun(runId: number, change: RunChange): Script<void> {
      yield* sql(
        `UPDATE runs SET state = coalesce(@state, state), exit = CASE WHEN @hasExit = 1 THEN @exit ELSE exit END,
         ending = CASE WHEN @hasExit = 1 THEN @ending ELSE ending END,
         ended_at = CASE WHEN @hasEnd = 1 THEN @endedAt ELSE ended_at END, requests = coalesce(@requests, requests),
         options = coalesce(@options, options), arranged = coalesce(@arranged, arranged)
       WHERE id = @runId`,
      ).run({
        runId,
        state: change.state ?? null,
        hasExit: change.exit === undefined ? 0 : 1,
        exit: change.exit ?? null,
        ending: change.ending === undefined ? null : JSON.stringify(change.ending),
        hasEnd: change.endedAt === undefined ? 0 : 1,
        endedAt: change.endedAt ?? null,
        requests: change.requests ?? null,
        options: change.options === undefined ? null : JSON.stringify(change.options),
        arranged: change.arranged ? 1 : null,
      });
    },

    *cancelRun(runId: number, busy: ReadonlySet<number>): Script<number> {
      yield* sql("UPDATE runs SET state = 'cancelled' WHERE id = ?").run(runId);
      return yield* dropUnsubmitted(connection, runId, busy);
    },
  };
}

/** Jobs and their runs. */
export function runMethods(connection: RootedDatabase) {
  const { atomic, read, sql, clock, root } = connection;
  const changes = runChanges(connection);
  const one = (where: string, ...values: unknown[]) => oneRun(connection, where, ...values);

  return {
    /** The job of that name, made when it is new. */
    job: async (name: string): Promise<Job> =>
      atomic(function* () {
        yield* sql("INSERT INTO jobs (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING").run(
          name,
          clock.now(),
        );
        return (yield* sql("SELECT id, name FROM jobs WHERE name = ?").get(name)) as Job;
      }),

    /**
     * Starts a run of a job, or continues the account's unfinished run of its edition with new options. A new run gets the
     * next number, or `number`, which no run has yet.
     */
    startRun: async (...given: Parameters<typeof changes.startRun>): Promise<Run> =>
      atomic(() => changes.startRun(...given)),

    // The items may be readable only once.
    /** `startRun` and `enroll` in one transaction: whatever happens, there is a run with all its items, or no run. */
    beginRun: async (
      jobId: number,
      start: RunStart,
      ...items: [items: Iterable<NewItem>, unselected?: Iterable<string>, onlyRows?: Iterable<string>]
    ): Promise<Run> =>
      atomic(function* () {
        const run = yield* changes.startRun(jobId, start);
        yield* enroll(connection, run.id, ...items);
        return run;
      }, "once"),

    /** A run by number, or the newest unfinished run, or the newest run. Null if there is none. */
    run: (which: number | "unfinished" | "newest"): Promise<Run | null> =>
      read(function* () {
        if (which === "newest") return yield* one("ORDER BY runs.id DESC LIMIT 1");
        // Paid tasks are collected even when their run was cancelled.
        if (which === "unfinished") {
          return yield* one(
            `WHERE ${unfinished} OR (runs.state = 'cancelled' AND ${owes}) ORDER BY runs.id DESC LIMIT 1`,
          );
        }
        return yield* one("WHERE runs.id = ?", which);
      }),

    runs: (): Promise<Run[]> =>
      read(function* () {
        return ((yield* sql(`${select} ORDER BY runs.id`).all()) as RunRow[]).map((row) => asRun(row, root));
      }),

    setRun: async (runId: number, change: RunChange): Promise<void> =>
      atomic(() => changes.setRun(runId, change)),

    /**
     * Nothing more is submitted for this run: items that were never submitted are dropped, and items whose requests were
     * refused leave the run. Items in `busy` are about to be submitted and stay. Returns how many items were dropped or
     * left.
     */
    cancelRun: async (runId: number, busy: ReadonlySet<number>): Promise<number> =>
      atomic(() => changes.cancelRun(runId, busy)),

    /**
     * Items that the run would still submit and that another job has paid for, or may have, since this run started: how
     * many, what they would cost, and one of them. Null if there are none.
     */
    madeElsewhere: (runId: number): Promise<MadeElsewhere | null> =>
      read(function* () {
        const found = (yield* sql(madeElsewhere).get({ runId })) as MadeElsewhere;
        return found.items === 0 ? null : found;
      }),
  };
}

function* dropUnsubmitted(
  connection: InTransaction,
  runId: number,
  busy: ReadonlySet<number>,
): Script<number> {
  const { sql } = connection;
  const waiting = (yield* sql(
    `SELECT id, variant = 1 AND EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id) AS returns FROM items
     WHERE run_id = ? AND state IN ('planned', 'blocked')`,
  ).all(runId)) as { id: number; returns: number | boolean }[];
  const chosen = waiting.filter(({ id }) => !busy.has(id));
  for (const { id, returns } of chosen) {
    // A dropped item that was submitted does not return with its row. Variants do not return at all.
    if (returns) yield* sql("UPDATE items SET run_id = NULL WHERE id = ?").run(id);
    else yield* applyTransition(connection, id, "dropped");
  }
  return chosen.length;
}

function* oneRun(
  { sql, root }: Pick<RootedDatabase, "sql" | "root">,
  where: string,
  ...values: unknown[]
): Script<Run | null> {
  const row = (yield* sql(`${select} ${where}`).get(...values)) as RunRow | undefined;
  return row ? asRun(row, root) : null;
}

/**
 * A run with the field names of its record; SQLite has neither booleans nor objects, and paths are stored relative to
 * the root.
 */
type RunRow = Omit<Run, "options" | "ending" | "owes" | "arranged"> & {
  options: string;
  ending: string | null;
  owes: number;
  arranged: number;
};

function asRun(row: RunRow, root: string): Run {
  return {
    ...row,
    manifest: absolutePath(root, row.manifest),
    outFolder: absolutePath(root, row.outFolder),
    options: JSON.parse(row.options),
    ending: row.ending === null ? null : JSON.parse(row.ending),
    owes: row.owes === 1,
    arranged: row.arranged === 1,
  };
}
