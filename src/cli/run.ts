import { type Command, Option } from "commander";
import { endWith } from "./ending.js";
import { withCarry, withService } from "./flags.js";
import type { RunFlags } from "./job-options.js";
import { manifestPath, sheetOptions, withManifest } from "./manifest-flags.js";
import { amount, dailyRequests, duration, oneOf, positive, share, timeOfDay, wholeNumber } from "./values.js";

export function defineRun(program: Command): void {
  withCarry(withManifest(withService(program.command("run"))))
    .description("plan, confirm, submit, poll and archive; goes on with an interrupted run")
    .option("--yes", "do not ask before spending (required without a terminal)")
    .option("--out <folder>", "where the files go (default: outputs in the workspace)")
    .option("--max-credits <n>", "spend at most this many credits in this run", amount)
    .option(
      "--on-insufficient <what>",
      "when the balance does not cover the plan: refuse, fit, stop or wait",
      oneOf("refuse", "fit", "stop", "wait"),
      "refuse",
    )
    .option(
      "--on-daily-limit <what>",
      "when the day's requests are used up: stop or wait",
      oneOf("stop", "wait"),
      "stop",
    )
    .option("--max-failures <n|%>", "submit nothing more once so many items have failed", share)
    .option("--retries <n>", "try a task that failed at the provider again, so often", wholeNumber, 1)
    .option("--until <time>", "submit nothing after this time of day, such as 06:00", timeOfDay)
    .option("--max-duration <time>", "submit nothing after so long, such as 2h", duration)
    .addOption(
      new Option("--overdue-wait <time>", "stay for overdue tasks so long, such as 30m")
        .argParser(duration)
        .default(0, "0m"),
    )
    .option("--sidecars", "write a NAME.json with its facts beside each file")
    .option("--skip-invalid", "go on without wrong rows; problems.csv tells what is wrong")
    .option("--lanes <n>", "submits in flight at once (default: by plan)", positive)
    .option("--downloads <n>", "downloads at once", positive, 4)
    .option("--rpm <n>", "send at most this many requests a minute", positive)
    .option("--rpd <n>", "send at most this many requests a day (3 or more)", dailyRequests)
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
