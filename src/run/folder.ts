import { join } from "node:path";
import { safeName } from "../archive/names.js";
import type { Run } from "../core/store.js";

/** The folder of a run's files: one below the output folder, named after the job. Absolute. */
export function jobFolder(run: Pick<Run, "outFolder" | "jobName">): string {
  return join(run.outFolder, safeName(run.jobName));
}
