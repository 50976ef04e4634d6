import { mediaFields } from "../../api/inputs.js";
import type { ProviderJob } from "../../providers/provider.js";
import type { TaskRecord } from "../../service/state/state.js";
import type { JobFiles } from "./job-files.js";
import type { JobRecord } from "./journal.js";

/** A job as its provider gets it; without media, it can be asked for and not be sent. */
export function providerJob(
  { taskId, model }: JobRecord,
  task: TaskRecord,
  files: JobFiles,
  media: ProviderJob["media"] = {},
): ProviderJob {
  const { prompt = "", ...rest } = task.input;
  const params = Object.fromEntries(
    Object.entries(rest).filter(([name]) => !(mediaFields as readonly string[]).includes(name)),
  );
  return { id: taskId, model, prompt, params, media, folder: files.jobFolder(taskId) };
}

/** A job that can be sent: its folder is empty, and its inputs are on this disk. */
export async function readyJob(
  job: JobRecord,
  task: TaskRecord,
  files: JobFiles,
  signal: AbortSignal,
): Promise<ProviderJob> {
  await files.emptyJobFolder(job.taskId);
  return providerJob(job, task, files, await files.inputs(task, signal));
}
