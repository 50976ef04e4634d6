import type { ExitName } from "../../core/exit.js";
import { continueJob } from "../../job/run/continue-job.js";
import { unfinishedRun } from "../../job/workspace/find-run.js";
import type { CarryFlags } from "../flags/shared.js";
import { followed } from "../output/follow.js";
import { jobOptions } from "../output/job-options.js";
import { settledWorkspace } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function resume({
  flags,
  args,
  machine,
}: Call<CarryFlags, { run?: number }>): Promise<ExitName> {
  const prepared = await jobOptions(flags, machine, settledWorkspace(flags, machine));
  return followed(prepared, flags, (show) =>
    continueJob(prepared.options, { choose: unfinishedRun(args.run) }, show),
  );
}
