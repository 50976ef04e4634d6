import { type Command, Option } from "commander";
import { EarlyExit } from "../core/exit.js";
import type { Resolution } from "../job/resolve.js";
import { endWith } from "./ending.js";
import { withCarry, withService } from "./flags.js";
import type { CarryFlags } from "./job-options.js";

export function defineResolve(program: Command): void {
  const ways = ["adopt", "resubmit", "refetch", "skip"];
  const others = (way: string) => ways.filter((other) => other !== way);
  withCarry(withService(program.command("resolve")))
    .description("decide on a held item: its task is known, pay again, fetch again, or give it up")
    .argument("<item>", "row id, path of a file, or task id")
    .addOption(
      new Option("--adopt <task>", "this task is the item's; checked against its own record").conflicts(
        others("adopt"),
      ),
    )
    .addOption(
      new Option("--resubmit", "submit it again; authorises one more charge").conflicts(others("resubmit")),
    )
    .addOption(new Option("--refetch", "ask for its outputs again").conflicts(others("refetch")))
    .addOption(
      new Option("--skip", "give it up; what it may have cost stays counted").conflicts(others("skip")),
    )
    .option("--yes", "do not ask before spending (required without a terminal)")
    .action(resolve);
}

interface ResolveFlags extends CarryFlags {
  adopt?: string;
  resubmit?: boolean;
  refetch?: boolean;
  skip?: boolean;
  yes?: boolean;
}

async function resolve(item: string, flags: ResolveFlags): Promise<void> {
  const [
    { continueJob },
    { resolveHeld, skipHeld },
    { jobOptions, settledWorkspace },
    { askPrice },
    { followed },
  ] = await Promise.all([
    import("../job/continue-job.js"),
    import("../job/resolve.js"),
    import("./job-options.js"),
    import("./consent.js"),
    import("./follow.js"),
  ]);
  const prepared = await jobOptions(flags, settledWorkspace(flags));
  const { options, display } = prepared;
  if (flags.skip) {
    const skipped = await skipHeld({ ...options, signal: options.interrupt }, item);
    display.say(`${skipped.rowId} is given up; what it may have cost stays counted`);
    return;
  }
  const held = resolveHeld(item, wayOf(flags), (items, credits) =>
    askPrice({ what: "submitted again", items, credits }, flags, prepared),
  );
  endWith(await followed(prepared, flags, (show) => continueJob(options, held, show)));
}

function wayOf({ adopt, resubmit, refetch }: ResolveFlags): Resolution {
  if (adopt !== undefined) return { adopt };
  if (resubmit) return "resubmit";
  if (refetch) return "refetch";
  throw new EarlyExit("usage", "say how: expected one of --adopt TASK, --resubmit, --refetch, --skip");
}
