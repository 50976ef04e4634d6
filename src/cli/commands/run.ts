import type { Command } from "commander";
import { manifestPath, sheetOptions } from "../flags/manifest.js";
import { withRun } from "../flags/run.js";
import { amount } from "../flags/values.js";
import { endWith } from "../output/ending.js";
import type { RunFlags } from "../output/session.js";

export function defineRun(program: Command): void {
  withRun(program.command("run"))
    .description("plan, confirm, submit, poll and archive; goes on with an interrupted run")
    .option("--tolerance <percent>", "how far a saved plan may be off what holds now", percent, 0)
    .action(run);
}

function percent(text: string): number {
  return amount(text.replace(/%$/, ""));
}

async function run(file: string, given: RunFlags & { tolerance: number }, command: Command): Promise<void> {
  const { checkDrift, flagsOfPlan, savedPlanIn } = await import("../output/saved-plan.js");
  const saved = await savedPlanIn(file);
  const flags = saved ? flagsOfPlan(saved, given, command) : given;
  const manifest = saved?.manifest ?? file;
  const [{ runJob }, { jobOptions, runOptions, settledWorkspace }, { askConsent }, { followed }] =
    await Promise.all([
      import("../../job/run/run-job.js"),
      import("../output/session.js"),
      import("../output/consent.js"),
      import("../output/follow.js"),
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
        async consent(plan) {
          if (saved) await checkDrift(saved, plan, given.tolerance, prepared.display.say);
          return askConsent(plan, flags, prepared);
        },
      },
      show,
    ),
  );
  endWith(exit);
}
