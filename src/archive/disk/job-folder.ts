import { join } from "node:path";
import type { Run } from "../../core/ports/store.js";
import { safeName } from "./names.js";

/** The folder of a run's files: one below the output folder, named after the job. Absolute. */
export function jobFolder(run: Pick<Run, "outFolder" | "jobName">): string {
  return join(run.outFolder, safeName(run.jobName));
}
