import type { Command } from "commander";
import { endWith } from "./ending.js";
import { type SharedFlags, withService } from "./flags.js";
import { duration, positive } from "./values.js";

export function defineResume(program: Command): void {
  withService(program.command("resume"))
    .description("go on with the newest or the named unfinished run, with its own options")
    .argument("[run]", "number of the run", positive)
    .option(
      "--unreachable-wait <time>",
      "give up when the service is out of reach for so long",
      duration,
      300_000,
    )
    .action(resume);
}

async function resume(
  which: number | undefined,
  flags: SharedFlags & { unreachableWait: number },
): Promise<void> {
  const [{ resumeJob }, { jobOptions, workspaceOf }, { showOutcome }] = await Promise.all([
    import("../job/resume-job.js"),
    import("./job-options.js"),
    import("./outcome.js"),
  ]);
  const { options, display } = await jobOptions(flags, workspaceOf(flags));
  const exit = await resumeJob({ ...options, ...(which === undefined ? {} : { run: which }) }, (outcome) =>
    showOutcome(outcome, flags, display),
  );
  endWith(exit);
}
