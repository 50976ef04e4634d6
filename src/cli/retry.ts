import type { Command } from "commander";
import type { FailureKind } from "../core/failure.js";
import { endWith } from "./ending.js";
import { withCarry, withService } from "./flags.js";
import type { CarryFlags } from "./job-options.js";
import { type SelectionFlags, selectionOf, withSelection } from "./selection-flags.js";
import { failureKindList, positive } from "./values.js";

export function defineRetry(program: Command): void {
  withCarry(withSelection(withService(program.command("retry"))))
    .description("submit the failed items of the newest or the named run again")
    .argument("[run]", "number of the run", positive)
    .option("--only <kinds>", "only failures of these kinds, such as provider,unknown", failureKindList)
    .option("--yes", "do not ask before spending (required without a terminal)")
    .action(retry);
}

interface RetryFlags extends CarryFlags, SelectionFlags {
  only?: FailureKind[];
  yes?: boolean;
}

async function retry(which: number | undefined, flags: RetryFlags): Promise<void> {
  const [
    { continueJob, newestRun },
    { retryFailed },
    { failureKinds },
    { jobOptions, settledWorkspace },
    { askPrice },
    { followed },
  ] = await Promise.all([
    import("../job/continue-job.js"),
    import("../job/retry.js"),
    import("../core/failure.js"),
    import("./job-options.js"),
    import("./consent.js"),
    import("./follow.js"),
  ]);
  const prepared = await jobOptions(flags, settledWorkspace(flags));
  const change = retryFailed(flags.only ?? failureKinds, selectionOf(flags), (items, credits) =>
    askPrice({ what: "submitted again", items, credits }, flags, prepared),
  );
  const exit = await followed(prepared, flags, (show) =>
    continueJob(prepared.options, { choose: newestRun(which), change }, show),
  );
  endWith(exit);
}
