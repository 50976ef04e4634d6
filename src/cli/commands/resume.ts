import type { Command } from "commander";
import { withCarry, withDailyCap, withService } from "../flags/shared.js";
import { positive } from "../flags/values.js";
import { endWith } from "../output/ending.js";
import type { CarryFlags } from "../output/session.js";

export function defineResume(program: Command): void {
  withDailyCap(withCarry(withService(program.command("resume"))))
    .description("go on with the newest or the named unfinished run, with its own options")
    .argument("[run]", "number of the run", positive)
    .action(resume);
}

async function resume(which: number | undefined, flags: CarryFlags): Promise<void> {
  const [{ continueJob }, { unfinishedRun }, { jobOptions, settledWorkspace }, { followed }] =
    await Promise.all([
      import("../../job/run/continue-job.js"),
      import("../../job/workspace/find-run.js"),
      import("../output/session.js"),
      import("../output/follow.js"),
    ]);
  const prepared = await jobOptions(flags, settledWorkspace(flags));
  const exit = await followed(prepared, flags, (show) =>
    continueJob(prepared.options, { choose: unfinishedRun(which) }, show),
  );
  endWith(exit);
}
