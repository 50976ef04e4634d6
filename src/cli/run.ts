import type { Command } from "commander";
import { endWith } from "./ending.js";
import type { RunFlags } from "./job-options.js";
import { manifestPath, sheetOptions } from "./manifest-flags.js";
import { withRun } from "./run-flags.js";

export function defineRun(program: Command): void {
  withRun(program.command("run"))
    .description("plan, confirm, submit, poll and archive; goes on with an interrupted run")
    .action(run);
}

async function run(manifest: string, flags: RunFlags): Promise<void> {
  const [{ runJob }, { jobOptions, runOptions, settledWorkspace }, { askConsent }, { followed }] =
    await Promise.all([
      import("../job/run-job.js"),
      import("./job-options.js"),
      import("./consent.js"),
      import("./follow.js"),
    ]);
  const workspace = settledWorkspace(flags, manifest, { make: true });
  const prepared = await jobOptions(flags, workspace);
  const exit = await followed(prepared, flags, (show) =>
    runJob(
      {
        ...prepared.options,
        manifest: manifestPath(manifest),
        ...sheetOptions(flags),
        skipInvalid: flags.skipInvalid ?? false,
        run: runOptions(flags),
        consent: (plan) => askConsent(plan, flags, prepared),
      },
      show,
    ),
  );
  endWith(exit);
}
