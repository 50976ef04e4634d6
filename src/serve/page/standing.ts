import {
  type JobStage,
  jobStages,
  type PageJob,
  type PageModel,
  type ServedStanding,
} from "../../api/served-page.js";
import { fromMicro } from "../../service/state/state.js";
import type { OwnService } from "../own-service.js";

const newestShown = 20;
const unknownShown = 100;

/** How the service stands, but for what is the page's own. */
export function standingOf(service: OwnService, now: number): Omit<ServedStanding, "url" | "formToken"> {
  giveBack(service, now);
  const open = openJobs(service);
  return {
    credit: service.served.credit,
    models: modelsOf(service, open),
    stages: countsOf(service, open),
    failed: failedOf(service),
    newest: newestJobs(service),
    unknown: unknownJobs(service),
    keys: service.keys.withLeft(now),
    now,
  };
}

/** What failed tasks gave back is credited when their account is next asked for, and the page shows all of them. */
function giveBack(service: OwnService, now: number): void {
  const due = service.state.db
    .prepare(
      "select distinct account_id as id from tasks where outcome = 'failed' and refunded = 0 and due_at <= ?",
    )
    .all(now) as { id: string }[];
  for (const { id } of due) service.settle(id);
}

interface OpenJobs {
  model: string;
  stage: JobStage;
  jobs: number;
}

function openJobs({ state }: OwnService): OpenJobs[] {
  return state.db
    .prepare(
      `select tasks.model, stage, count(*) as jobs from jobs join tasks on tasks.id = task_id
       where stage <> 'decided' group by tasks.model, stage`,
    )
    .all() as OpenJobs[];
}

function modelsOf({ served }: OwnService, open: readonly OpenJobs[]): PageModel[] {
  const jobsOf = (key: string, ...wanted: JobStage[]) =>
    sum(open.filter(({ model, stage }) => model === key && wanted.includes(stage)));
  return served.models.map(({ listed, provider }) => ({
    key: listed.key,
    name: listed.name,
    category: listed.category,
    provider: provider.name,
    kind: provider.kind,
    credits: listed.credits,
    prices: listed.parameters.flatMap(({ key: param, options }) =>
      options.flatMap(({ value: option, credits_cost: credits }) =>
        credits === undefined ? [] : [{ param, option, credits }],
      ),
    ),
    waiting: jobsOf(listed.key, "queued"),
    working: jobsOf(listed.key, "submitting", "accepted", "made"),
  }));
}

function countsOf({ state }: OwnService, open: readonly OpenJobs[]): Record<JobStage, number> {
  // Every task has a job, and an index counts them in far less time than the journal.
  const { all } = state.db.prepare('select count(*) as "all" from tasks').get() as { all: number };
  const counted = jobStages.map((name) => [name, sum(open.filter(({ stage }) => stage === name))] as const);
  return { ...(Object.fromEntries(counted) as Record<JobStage, number>), decided: all - sum(open) };
}

function failedOf({ state }: OwnService): number {
  const { failed } = state.db
    .prepare("select count(*) as failed from tasks where outcome = 'failed'")
    .get() as {
    failed: number;
  };
  return failed;
}

function sum(open: readonly OpenJobs[]): number {
  return open.reduce((all, { jobs }) => all + jobs, 0);
}

const columns = `tasks.id, tasks.model, jobs.provider, keys.name as "key", substr(json_extract(tasks.input, '$.prompt'), 1, 400) as prompt, stage,
  outcome, error, ref, note, iif(outcome = 'failed', 0, cost_micro) as credits, queued_at as queuedAt, submitted_at as submittedAt`;

function newestJobs({ state }: OwnService): PageJob[] {
  const rows = state.db
    .prepare(
      `select ${columns} from tasks join jobs on jobs.task_id = tasks.id join keys on keys.id = tasks.key_id
       order by tasks.rowid desc limit ?`,
    )
    .all(newestShown);
  return (rows as PageJob[]).map(inCredits);
}

function unknownJobs({ state }: OwnService): PageJob[] {
  const rows = state.db
    .prepare(
      `select ${columns} from jobs join tasks on tasks.id = jobs.task_id join keys on keys.id = tasks.key_id
       where stage = 'unknown' and stage <> 'decided' order by queued_at, tasks.id limit ?`,
    )
    .all(unknownShown);
  return (rows as PageJob[]).map(inCredits);
}

function inCredits(job: PageJob): PageJob {
  return { ...job, credits: fromMicro(job.credits) };
}
