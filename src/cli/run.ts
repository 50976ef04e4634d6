import { resolve } from "node:path";
import type { Command } from "commander";
import { endWith } from "./ending.js";
import { withService } from "./flags.js";
import type { RunFlags } from "./job-options.js";
import { amount, dailyRequests, duration, oneOf, positive } from "./values.js";

export function defineRun(program: Command): void {
  withService(program.command("run"))
    .description("plan, confirm, submit, poll and archive; goes on with an interrupted run")
    .argument("<manifest>", "CSV or JSON file with the rows")
    .option("--yes", "do not ask before spending (required without a terminal)")
    .option("--out <folder>", "where the files go (default: outputs in the workspace)")
    .option("--max-credits <n>", "spend at most this many credits in this run", amount)
    .option(
      "--on-insufficient <what>",
      "when the balance does not cover the plan: refuse or fit",
      oneOf("refuse", "fit"),
      "refuse",
    )
    .option(
      "--on-daily-limit <what>",
      "when the day's requests are used up: stop or wait",
      oneOf("stop", "wait"),
      "stop",
    )
    .option("--lanes <n>", "submits in flight at once (default: by plan)", positive)
    .option("--downloads <n>", "downloads at once", positive, 4)
    .option("--rpm <n>", "send at most this many requests a minute", positive)
    .option("--rpd <n>", "send at most this many requests a day (3 or more)", dailyRequests)
    .option(
      "--unreachable-wait <time>",
      "give up when the service is out of reach for so long",
      duration,
      300_000,
    )
    .action(run);
}

async function run(manifest: string, flags: RunFlags): Promise<void> {
  const [{ runJob }, { jobOptions, runOptions, workspaceOf }, { askConsent }, { showOutcome }] =
    await Promise.all([
      import("../job/run-job.js"),
      import("./job-options.js"),
      import("./consent.js"),
      import("./outcome.js"),
    ]);
  const workspace = workspaceOf(flags, manifest);
  const { options, display } = await jobOptions(flags, workspace, manifest);
  const exit = await runJob(
    {
      ...options,
      manifest: resolve(manifest),
      edition: "",
      run: runOptions(flags),
      onInsufficient: flags.onInsufficient,
      consent: (plan) => askConsent(plan, flags, display),
    },
    (outcome) => showOutcome(outcome, flags, display),
  );
  endWith(exit);
}
