import type { Clock } from "../clock.js";
import type { Credits } from "../core/money.js";
import { type Sql, statements } from "../sqlite.js";
import { type Migration, openDatabase, transactions } from "./open.js";

export type Flag = readonly [name: string, value?: string];

/** A job by the clock, as it was added. */
export interface Schedule {
  name: string;
  /** The manifest's path: below the workspace relative to it, else absolute. */
  manifest: string;
  /** Five fields, or a name such as `@daily`. */
  cron: string;
  /** IANA name of the zone in which the cron line is read. */
  zone: string;
  /** The flags of `bulkgen run`: each by its long name, with its value where it takes one. */
  flags: readonly Flag[];
  /** What becomes of nights that nobody was there for. */
  missed: "once" | "skip";
  /** Due times up to here have been dealt with (UTC ms). */
  seenUntil: number;
}

/**
 * running: its process is, or was when the daemon died, at work. waiting: it goes on at `resumeAt`. ended: with an
 * exit. skipped: it was due while the one before it was at work. missed: nobody was there, and it is not caught up.
 */
type NightState = "running" | "waiting" | "ended" | "skipped" | "missed";

/** One due time of a schedule. */
export interface ScheduledRun {
  schedule: string;
  /** UTC ms; by hand: when it was begun. */
  dueAt: number;
  state: NightState;
  startedAt: number | null;
  endedAt: number | null;
  /** The exit code of its process; null where a signal ended it. */
  exit: number | null;
  /** The run's number in the workspace, once it is known, and what it came to. */
  run: number | null;
  credits: Credits | null;
  archived: number | null;
  failed: number | null;
  held: number | null;
  resumeAt: number | null;
  /** How often its process was lost: ended by a signal or by a defect. */
  losses: number;
  /** One line: what came of it, or why nothing did. */
  note: string | null;
}

export type ScheduledRunChange = Partial<Omit<ScheduledRun, "schedule" | "dueAt">>;

/** The schedules of a workspace and their nights. Every method is one transaction. */
export interface Schedules {
  /** False when there is one of that name. */
  add(schedule: Schedule): Promise<boolean>;
  /** Its nights stay, so that a schedule of the same name never makes one of them again. False when there is none. */
  remove(name: string): Promise<boolean>;
  all(): Promise<Schedule[]>;
  /** Claims a night in the state given: false when it was claimed before, by whomever. Moves `seenUntil` along. */
  claim(
    schedule: string,
    dueAt: number,
    change: ScheduledRunChange & { state: NightState },
  ): Promise<boolean>;
  change(schedule: string, dueAt: number, change: ScheduledRunChange): Promise<void>;
  /** Due times up to here have been dealt with. */
  seen(schedule: string, until: number): Promise<void>;
  /** Newest first. */
  nights(schedule: string, limit: number): Promise<ScheduledRun[]>;
  /** Nights in one of these states, oldest first. */
  nightsIn(...states: NightState[]): Promise<ScheduledRun[]>;
  close(): void;
}

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
];

/** Opens the schedules of a workspace (or ":memory:"). Throws NewerDatabase, or SQLite's error. */
export function openSchedules(path: string, clock: Clock): Schedules {
  const db = openDatabase(path, migrations);
  const sql = statements(db);
  const atomic = transactions(db);
  const seen = (name: string, until: number) =>
    sql("UPDATE schedules SET seen_until = max(seen_until, ?) WHERE name = ?").run(until, name);

  return {
    add: async ({ flags, ...schedule }) =>
      sql(
        `INSERT INTO schedules VALUES (@name, @manifest, @cron, @zone, @flags, @missed, @seenUntil)
         ON CONFLICT DO NOTHING`,
      ).run({ ...schedule, flags: JSON.stringify(flags) }).changes === 1,

    remove: async (name) => sql("DELETE FROM schedules WHERE name = ?").run(name).changes === 1,

    all: async () => (sql("SELECT * FROM schedules ORDER BY name").all() as ScheduleRow[]).map(asSchedule),

    claim: async (schedule, dueAt, change) =>
      atomic(() => {
        const { changes } = sql(
          "INSERT INTO scheduled_runs (schedule, due_at, state) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        ).run(schedule, dueAt, change.state);
        seen(schedule, Math.min(dueAt, clock.now()));
        if (changes === 1) update(sql, schedule, dueAt, change);
        return changes === 1;
      }),

    change: async (schedule, dueAt, change) => update(sql, schedule, dueAt, change),

    async seen(schedule, until) {
      seen(schedule, until);
    },

    nights: async (schedule, limit) =>
      (
        sql("SELECT * FROM scheduled_runs WHERE schedule = ? ORDER BY due_at DESC LIMIT ?").all(
          schedule,
          limit,
        ) as NightRow[]
      ).map(asNight),

    nightsIn: async (...states) =>
      (
        sql(
          "SELECT * FROM scheduled_runs WHERE state IN (SELECT value FROM json_each(?)) ORDER BY due_at, schedule",
        ).all(JSON.stringify(states)) as NightRow[]
      ).map(asNight),

    close: () => db.close(),
  };
}

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
  sql(`UPDATE scheduled_runs SET ${names.join(", ")} WHERE schedule = @schedule AND due_at = @dueAt`).run({
    ...change,
    schedule,
    dueAt,
  });
}

interface ScheduleRow {
  name: string;
  manifest: string;
  cron: string;
  zone: string;
  flags: string;
  missed: Schedule["missed"];
  seen_until: number;
}

function asSchedule({ flags, seen_until, ...row }: ScheduleRow): Schedule {
  return { ...row, flags: JSON.parse(flags), seenUntil: seen_until };
}

interface NightRow {
  schedule: string;
  due_at: number;
  state: NightState;
  started_at: number | null;
  ended_at: number | null;
  exit: number | null;
  run: number | null;
  credits: number | null;
  archived: number | null;
  failed: number | null;
  held: number | null;
  resume_at: number | null;
  losses: number;
  note: string | null;
}

function asNight(row: NightRow): ScheduledRun {
  const { due_at: dueAt, started_at: startedAt, ended_at: endedAt, resume_at: resumeAt, ...same } = row;
  return { ...same, credits: same.credits as Credits | null, dueAt, startedAt, endedAt, resumeAt };
}
