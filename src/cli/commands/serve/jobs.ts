import { EarlyExit } from "../../../core/exit.js";
import type { ServeJobsFlags, ServeResolveFlags } from "../../../options/serve.js";
import type { JobRecord } from "../../../serve/works/journal.js";
import { type PersonsWord, settleUnknown } from "../../../serve/works/person.js";
import { table } from "../../../text/table.js";
import { print } from "../../output/print.js";
import type { Call } from "../call.js";
import { withBooks } from "./state.js";

export async function listServedJobs({ flags, machine }: Call<ServeJobsFlags>): Promise<undefined> {
  const open = withBooks(flags, machine, {}, ({ journal }) => journal.open());
  const jobs = flags.unknown ? open.filter(({ stage }) => stage === "unknown") : open;
  const shown = jobs.map(view);
  print(flags, machine, "serve-jobs", shown, (style) => {
    if (shown.length === 0) return flags.unknown ? "no job is in doubt" : "no job is open";
    const columns = [
      { title: "task" },
      { title: "model" },
      { title: "provider" },
      { title: "stage" },
      { title: "sent" },
      { title: "note", flexible: true },
    ];
    const rows = shown.map((job) => [
      job.task_id,
      job.model,
      job.provider,
      job.stage,
      job.submitted_at?.slice(0, 16).replace("T", " ") ?? "",
      job.note ?? "",
    ]);
    const text = table(columns, rows, style);
    return shown.some(({ stage }) => stage === "unknown") ? `${text}\n\n${advice}` : text;
  });
}

const advice = `Of an unknown job nobody knows whether the provider has it. Look at the provider's own page for one that was sent then:
  it is there        bulkgen serve jobs resolve TASK --found ITS-ID
  it is not there    bulkgen serve jobs resolve TASK --failed     (the credits are given back)
  send it anyway     bulkgen serve jobs resolve TASK --again      (paid for twice if it was there)`;

export async function resolveServedJob({
  flags,
  args: { task },
  machine,
}: Call<ServeResolveFlags, { task: string }>): Promise<undefined> {
  const verdict = verdictOf(flags);
  const job = withBooks(flags, machine, {}, (books) => {
    const problem = settleUnknown(books, task, verdict, machine.clock.now());
    if (problem !== null) throw new EarlyExit("usage", problem);
    return books.journal.job(task);
  });
  if (job) print(flags, machine, "serve-job", view(job), () => `${task}: ${done[verdict.kind]}`);
}

const done = {
  found: "the provider is asked for it",
  failed: "failed; its credits are given back",
  again: "it is sent again",
};

function verdictOf({ found, failed, again }: ServeResolveFlags): PersonsWord {
  if (found !== undefined) return { kind: "found", ref: found };
  if (failed) return { kind: "failed" };
  if (again) return { kind: "again" };
  throw new EarlyExit("usage", "say what became of it: --found NAME, --failed or --again");
}

function view(job: JobRecord) {
  const { taskId, model, provider, stage, ref, note, queuedAt, submittedAt } = job;
  return {
    task_id: taskId,
    model: model.key,
    provider,
    stage,
    ref,
    note,
    queued_at: new Date(queuedAt).toISOString(),
    submitted_at: submittedAt === null ? null : new Date(submittedAt).toISOString(),
  };
}
