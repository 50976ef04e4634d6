import { type JobStage, jobStages } from "../../api/served-page.js";
import type { Cost, JobOutput, Json, ModelSettings, ProviderSettings } from "../../providers/provider.js";
import type { SqliteState } from "../../service/state/sqlite-state.js";
import { type Sql, statements } from "../../sqlite.js";

/**
 * A job in the journal, which is in the database of the tasks. Each stage is committed before the step that it names; `resume`
 * says how an accepted job is found again, and `outputs` what was made.
 */
export interface JobRecord {
  taskId: string;
  /** As the models file named it. */
  provider: string;
  settings: ProviderSettings;
  model: ModelSettings;
  stage: JobStage;
  /** The provider's name for it. */
  ref: string | null;
  resume: Json;
  outputs: JobOutput[] | null;
  cost: Cost | null;
  /** What a person should know. */
  note: string | null;
  /** UTC ms. */
  queuedAt: number;
  submittedAt: number | null;
  endedAt: number | null;
}

const schema = `
create table if not exists jobs (
  task_id text primary key references tasks(id), provider text not null, settings text not null, model text not null,
  stage text not null check (stage in (${jobStages.map((stage) => `'${stage}'`).join(", ")})),
  ref text, resume text not null default 'null', outputs text, cost text, note text,
  queued_at integer not null, submitted_at integer, ended_at integer, cleaned integer not null default 0
) strict, without rowid;
create index if not exists jobs_open on jobs (queued_at) where stage <> 'decided';
create index if not exists tasks_failed on tasks (id) where outcome = 'failed';
create index if not exists jobs_by_ref on jobs (provider, ref) where ref is not null;
create index if not exists jobs_ended on jobs (ended_at) where stage = 'decided' and cleaned = 0;

create table if not exists uploads (
  id text primary key, account_id text not null, type text not null, bytes integer not null, at integer not null
) strict, without rowid;
create index if not exists uploads_by_age on uploads (at);
`;

const columns = `task_id as taskId, provider, settings, model, stage, ref, resume, outputs, cost, note, queued_at as queuedAt,
  submitted_at as submittedAt, ended_at as endedAt`;

type JobRow = Record<"settings" | "model" | "resume", string> & {
  outputs: string | null;
  cost: string | null;
};

function jobOf(row: unknown): JobRecord {
  const { settings, model, resume, outputs, cost } = row as JobRow;
  return {
    ...(row as JobRecord),
    settings: JSON.parse(settings) as ProviderSettings,
    model: JSON.parse(model) as ModelSettings,
    resume: JSON.parse(resume) as Json,
    outputs: outputs === null ? null : (JSON.parse(outputs) as JobOutput[]),
    cost: cost === null ? null : (JSON.parse(cost) as Cost),
  };
}

/** An input that a client has put here. */
export interface Upload {
  id: string;
  accountId: string;
  type: string;
  bytes: number;
  at: number;
}

/** What changes with a step; the rest of the record stays. */
export type JobChange = Partial<
  Pick<
    JobRecord,
    | "stage"
    | "ref"
    | "resume"
    | "outputs"
    | "cost"
    | "note"
    | "submittedAt"
    | "endedAt"
    | "settings"
    | "model"
  >
>;

/** Writes are made inside a transaction of the caller's. */
export class Journal {
  private readonly sql: Sql;

  constructor(state: SqliteState) {
    state.db.exec(schema);
    this.sql = statements(state.db);
  }

  add(job: Pick<JobRecord, "taskId" | "settings" | "model" | "queuedAt">): void {
    this.sql(`insert into jobs (task_id, provider, settings, model, stage, queued_at)
      values (?, ?, ?, ?, 'queued', ?)`).run(
      job.taskId,
      job.settings.name,
      JSON.stringify(job.settings),
      JSON.stringify(job.model),
      job.queuedAt,
    );
  }

  job(taskId: string): JobRecord | undefined {
    const row = this.sql(`select ${columns} from jobs where task_id = ?`).get(taskId);
    return row === undefined ? undefined : jobOf(row);
  }

  /** Whether another job is known by that name at a provider. */
  isKnown(provider: string, ref: string, besides: string): boolean {
    const found = this.sql("select 1 from jobs where provider = ? and ref = ? and task_id <> ?");
    return found.get(provider, ref, besides) !== undefined;
  }

  /** Those that are not decided, oldest first. */
  open(): JobRecord[] {
    return this.sql(`select ${columns} from jobs where stage <> 'decided' order by queued_at, task_id`)
      .all()
      .map(jobOf);
  }

  update(taskId: string, change: JobChange): void {
    const written = {
      ...change,
      ...(change.resume === undefined ? {} : { resume: JSON.stringify(change.resume) }),
      ...(change.settings === undefined ? {} : { settings: JSON.stringify(change.settings) }),
      ...(change.model === undefined ? {} : { model: JSON.stringify(change.model) }),
      ...(change.outputs === undefined ? {} : { outputs: textOf(change.outputs) }),
      ...(change.cost === undefined ? {} : { cost: textOf(change.cost) }),
    };
    const names = Object.keys(written) as (keyof JobChange)[];
    const set = names.map((name) => `${columnOf[name] ?? name} = @${name}`).join(", ");
    this.sql(`update jobs set ${set} where task_id = @taskId and stage <> 'decided'`).run({
      ...written,
      taskId,
    });
  }

  /** How long the newest jobs took from submit to end (ms), the oldest of them first, each with its model. */
  newest(limit: number): { model: string; ms: number }[] {
    const rows = this.sql(`select tasks.model, ended_at - submitted_at as ms
      from (select task_id, submitted_at, ended_at from jobs where stage = 'decided' and cleaned = 0 order by ended_at desc limit ?)
      join tasks on tasks.id = task_id
      where submitted_at is not null and outcome = 'completed' order by ended_at`).all(limit);
    return rows as { model: string; ms: number }[];
  }

  /** Tasks whose files are not needed any more: decided before `at`. */
  endedBefore(at: number, limit: number): string[] {
    const rows = this.sql(
      "select task_id as id from jobs where stage = 'decided' and cleaned = 0 and ended_at < ? order by ended_at limit ?",
    ).all(at, limit);
    return (rows as { id: string }[]).map(({ id }) => id);
  }

  /** The files of a job are gone; the job itself stays in the journal. */
  markCleaned(taskId: string): void {
    this.sql("update jobs set cleaned = 1 where task_id = ?").run(taskId);
  }

  addUpload(upload: Upload): void {
    this.sql(`insert or replace into uploads (id, account_id, type, bytes, at)
      values (@id, @accountId, @type, @bytes, @at)`).run(upload);
  }

  upload(id: string): Upload | undefined {
    const row = this.sql("select id, account_id as accountId, type, bytes, at from uploads where id = ?").get(
      id,
    );
    return row as Upload | undefined;
  }

  uploadsBefore(at: number): string[] {
    const rows = this.sql("select id from uploads where at < ?").all(at);
    return (rows as { id: string }[]).map(({ id }) => id);
  }

  removeUpload(id: string): void {
    this.sql("delete from uploads where id = ?").run(id);
  }
}

const columnOf: Partial<Record<keyof JobChange, string>> = {
  submittedAt: "submitted_at",
  endedAt: "ended_at",
};

function textOf(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
