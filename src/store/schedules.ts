import { existsSync } from "node:fs";
import type { Clock } from "../clock.js";
import { defined } from "../core/defined.js";
import type { Credits } from "../core/money.js";
import type { MissedChoice, ScheduledRunState } from "../core/scheduled-run.js";
import { named, type Sql, statements } from "../sqlite.js";
import {
  type Migration,
  openDatabase,
  openReadOnly,
  refuseForeignCode,
  schemaOf,
  transactions,
} from "./open.js";

export type Flag = readonly [name: string, value?: string];

/** A job that runs at set times. */
export interface Schedule {
  name: string;
  /** The manifest's path: relative to the workspace if it is inside, else absolute. */
  manifest: string;
  /** Five fields, or a name such as `@daily`. */
  cron: string;
  /** IANA name of the zone in which the cron line is read. */
  zone: string;
  /** The flags of `bulkgen run`, by their long names, with their values. */
  flags: readonly Flag[];
  /** Whether missed runs are caught up. */
  missed: MissedChoice;
  /** Due times up to here have been handled (UTC ms). */
  seenUntil: number;
  /** Since when (UTC ms) none of its runs is started; null while they are. */
  pausedAt: number | null;
}

export type ScheduleChange = Partial<Omit<Schedule, "name">>;

/** A scheduled run: one due time of a schedule. */
export interface ScheduledRun {
  schedule: string;
  /** UTC ms; for a run started by hand, its start. */
  dueAt: number;
  state: ScheduledRunState;
  startedAt: number | null;
  endedAt: number | null;
  /** The exit code of its process; null when a signal ended it, or it could not be started. */
  exit: number | null;
  /** The run's number in the workspace, once it is known, and its results. */
  run: number | null;
  credits: Credits | null;
  archived: number | null;
  failed: number | null;
  held: number | null;
  /** When the run can continue without a person (UTC ms). */
  resumeAt: number | null;
  /** How often a signal or a defect ended its process. */
  losses: number;
  /** Its result in one line. */
  note: string | null;
}

export type ScheduledRunChange = Partial<Omit<ScheduledRun, "schedule" | "dueAt">>;

/** The note of a run that a person starts with `schedule run`, until it has ended. */
export const byHand = "by hand";

/** The schedules of a workspace and their runs. Each method is one transaction. */
export type Schedules = ReturnType<typeof openSchedules>;

const migrations: readonly Migration[] = [
  (db) =>
    db.exec(`
      CREATE TABLE opened (count INTEGER NOT NULL);
      INSERT INTO opened VALUES (0);
      CREATE TABLE schedules (
        name TEXT PRIMARY KEY,
        manifest TEXT NOT NULL,
        cron TEXT NOT NULL,
        zone TEXT NOT NULL,
        flags TEXT NOT NULL,
        missed TEXT NOT NULL CHECK (missed IN ('once', 'skip')),
        seen_until INTEGER NOT NULL
      );
      -- The key makes a scheduled run unique, even with several daemons.
      CREATE TABLE scheduled_runs (
        schedule TEXT NOT NULL,
        due_at INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'ended', 'skipped', 'missed')),
        started_at INTEGER,
        ended_at INTEGER,
        exit INTEGER,
        run INTEGER,
        credits INTEGER,
        archived INTEGER,
        failed INTEGER,
        held INTEGER,
        resume_at INTEGER,
        losses INTEGER NOT NULL DEFAULT 0,
        note TEXT,
        PRIMARY KEY (schedule, due_at)
      );
      CREATE INDEX scheduled_runs_state ON scheduled_runs (state, due_at);
    `),
  (db) => db.exec("ALTER TABLE schedules ADD COLUMN paused_at INTEGER"),
];
/** Before this version no schedule could be paused. */
const versionWithPauses = 2;

/** What a program reads that changes nothing. */
export type SchedulesReader = ReturnType<typeof readerOn> & { close(): void };

/** Null if there are none. Throws NewerDatabase, or SQLite's error. Opening them otherwise is a change of the file. */
export function readSchedules(path: string): SchedulesReader | null {
  if (!existsSync(path)) return null;
  const db = openReadOnly(path);
  try {
    refuseForeignCode(db, path, migrations);
    const version = schemaOf(db, path, migrations.length);
    if (version > 0) return { ...readerOn(statements(db), path, version), close: () => db.close() };
  } catch (error) {
    db.close();
    throw error;
  }
  // The first schedule is being added.
  db.close();
  return null;
}

function readerOn(sql: Sql, path: string, version = migrations.length) {
  return {
    all: async (): Promise<Schedule[]> => {
      const rows = sql(
        `SELECT name, manifest, cron, zone, flags, missed, seen_until AS seenUntil, ${version < versionWithPauses ? "NULL" : "paused_at"} AS pausedAt
         FROM schedules ORDER BY name`,
      ).all() as ScheduleRow[];
      try {
        return rows.map(asSchedule);
      } catch (error) {
        throw named(path, error);
      }
    },

    /** Newest first. */
    scheduledRuns: async (schedule: string, limit: number): Promise<ScheduledRun[]> =>
      sql(`${selectRuns} WHERE schedule = ? ORDER BY due_at DESC LIMIT ?`).all(
        schedule,
        limit,
      ) as ScheduledRun[],
  };
}

/** Opens the schedules of a workspace (or ":memory:"). Throws NewerDatabase, or SQLite's error. */
export function openSchedules(path: string, clock: Clock) {
  const db = openDatabase(path, migrations);
  const sql = statements(db);
  const atomic = transactions(db);

  // What a person has started by hand is not continued by the daemon anyway.
  const endOpen = (name: string, note: string) =>
    sql(
      `UPDATE scheduled_runs SET state = 'ended', ended_at = ?, resume_at = NULL, note = ?
       WHERE schedule = ? AND (state = 'waiting' OR (state = 'running' AND note IS NOT ?))`,
    ).run(clock.now(), note, name, byHand).changes;

  return {
    ...readerOn(sql, path),

    /** False when the name is taken. */
    add: async ({ flags, ...schedule }: Schedule): Promise<boolean> =>
      sql(
        `INSERT INTO schedules VALUES (@name, @manifest, @cron, @zone, @flags, @missed, @seenUntil, @pausedAt)
         ON CONFLICT DO NOTHING`,
      ).run({ ...schedule, flags: JSON.stringify(flags) }).changes === 1,

    /** With a note, its runs that the daemon would continue end with it. Returns how many ended. */
    edit: async (name: string, { flags, ...change }: ScheduleChange, endNote?: string): Promise<number> =>
      atomic(() => {
        const values = { ...change, ...(flags === undefined ? {} : { flags: JSON.stringify(flags) }) };
        const sets = (Object.keys(values) as (keyof ScheduleChange)[]).map(
          (key) => `${scheduleColumns[key]} = @${key}`,
        );
        sql(`UPDATE schedules SET ${sets.join(", ")} WHERE name = @name`).run({ ...values, name });
        return endNote === undefined ? 0 : endOpen(name, endNote);
      }),

    /**
     * False when there is no such schedule. The record of its runs stays, so that a new schedule of that name can neither
     * repeat them nor continue them: those that the daemon would continue end with this note.
     */
    remove: async (name: string, endNote: string): Promise<boolean> =>
      atomic(() => {
        endOpen(name, endNote);
        return sql("DELETE FROM schedules WHERE name = ?").run(name).changes === 1;
      }),

    /** Claims a due time: false when it was claimed before, by any process. Moves `seenUntil` forward. */
    claim: async (
      schedule: string,
      dueAt: number,
      change: ScheduledRunChange & { state: ScheduledRunState },
    ): Promise<boolean> =>
      atomic(() => {
        const { changes } = sql(
          "INSERT INTO scheduled_runs (schedule, due_at, state) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        ).run(schedule, dueAt, change.state);
        const until = Math.min(dueAt, clock.now());
        sql("UPDATE schedules SET seen_until = max(seen_until, ?) WHERE name = ?").run(until, schedule);
        if (changes === 1) update(sql, schedule, dueAt, change);
        return changes === 1;
      }),

    /** A run that has ended stays so, and false is returned; what else came of it is recorded. */
    change: async (
      schedule: string,
      dueAt: number,
      { state, resumeAt, ...came }: ScheduledRunChange,
    ): Promise<boolean> =>
      atomic(() => {
        const open = sql(
          "SELECT 1 FROM scheduled_runs WHERE schedule = ? AND due_at = ? AND state <> 'ended'",
        ).get(schedule, dueAt);
        const isOver = open === undefined;
        update(sql, schedule, dueAt, isOver ? came : { ...came, ...defined({ state, resumeAt }) });
        return !isOver;
      }),

    /** Marks due times up to here as handled, and later ones as not: the clock may have been set back. */
    async seen(schedule: string, until: number): Promise<void> {
      sql("UPDATE schedules SET seen_until = ? WHERE name = ?").run(until, schedule);
    },

    /** Runs in one of these states, oldest first. */
    scheduledRunsIn: async (...states: ScheduledRunState[]): Promise<ScheduledRun[]> =>
      sql(`${selectRuns} WHERE state IN (SELECT value FROM json_each(?)) ORDER BY due_at, schedule`).all(
        JSON.stringify(states),
      ) as ScheduledRun[],

    close: () => void db.close(),
  };
}

/** Scheduled runs under the names of their records. */
const selectRuns = `
  SELECT schedule, due_at AS dueAt, state, started_at AS startedAt, ended_at AS endedAt, exit, run, credits, archived, failed,
    held, resume_at AS resumeAt, losses, note
  FROM scheduled_runs`;

const scheduleColumns: Readonly<Record<keyof ScheduleChange, string>> = {
  manifest: "manifest",
  cron: "cron",
  zone: "zone",
  flags: "flags",
  missed: "missed",
  seenUntil: "seen_until",
  pausedAt: "paused_at",
};

const columns: Readonly<Record<keyof ScheduledRunChange, string>> = {
  state: "state",
  startedAt: "started_at",
  endedAt: "ended_at",
  exit: "exit",
  run: "run",
  credits: "credits",
  archived: "archived",
  failed: "failed",
  held: "held",
  resumeAt: "resume_at",
  losses: "losses",
  note: "note",
};

function update(sql: Sql, schedule: string, dueAt: number, change: ScheduledRunChange): void {
  const names = (Object.keys(change) as (keyof ScheduledRunChange)[]).map(
    (name) => `${columns[name]} = @${name}`,
  );
  if (names.length === 0) return;
  sql(`UPDATE scheduled_runs SET ${names.join(", ")} WHERE schedule = @schedule AND due_at = @dueAt`).run({
    ...change,
    schedule,
    dueAt,
  });
}

type ScheduleRow = Omit<Schedule, "flags"> & { flags: string };

function asSchedule({ flags, ...row }: ScheduleRow): Schedule {
  return { ...row, flags: JSON.parse(flags) };
}
