import { type Command, Option } from "commander";
import { withManifest } from "./manifest.js";
import { withSettling } from "./settle.js";
import { withCarry, withDailyCap, withService } from "./shared.js";
import {
  amount,
  dailyRequests,
  duration,
  endTime,
  modelAmount,
  oneOf,
  positive,
  requestShare,
  share,
  wholeNumber,
} from "./values.js";

/** Adds the flags of `run`, which a schedule carries too. */
export function withRun(command: Command): Command {
  const first = withCarry(withManifest(withService(command)))
    .option("--yes", "do not ask before spending (required without a terminal)")
    .option("--out <folder>", "where the files go (default: outputs in the workspace)");
  const flags = withCaps(first)
    .option(
      "--on-insufficient <what>",
      "when the balance does not cover the plan: refuse, fit, stop or wait",
      oneOf("refuse", "fit", "stop", "wait"),
      "refuse",
    )
    .option(
      "--on-daily-limit <what>",
      "when the day's requests are used up, or the service asks for a long silence: stop or wait",
      oneOf("stop", "wait"),
      "stop",
    )
    .option("--max-failures <n|%>", "submit nothing more once so many items have failed", share)
    .option("--retries <n>", "try a task that failed at the provider again, so often", wholeNumber, 1)
    .option("--until <time>", "submit nothing after this time of day, such as 06:00", endTime)
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
    .option("--share <percent>", "use this share of the account's requests, such as 50%", requestShare)
    .option(
      "--poll <how>",
      "look for results early or late: eager, balanced or frugal (default: by what is short)",
      oneOf("eager", "balanced", "frugal"),
    );
  return withSettling(flags);
}

/** Adds the flags of what may be spent, by which `plan` prices too. */
export function withCaps(command: Command): Command {
  const ofRun = command
    .option("--max-credits <n>", "spend at most this many credits in this run", amount)
    .option(
      "--max-credits-per-model <model=n>",
      "spend at most so much on this model; the others go on; may be repeated",
      modelAmount,
    )
    .option("--keep-credits <n>", "leave at least this many credits on the account", amount);
  return withDailyCap(ofRun);
}
