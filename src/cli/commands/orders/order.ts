import type { Command } from "commander";
import type { Carried, WantedOrder } from "../../../job/orders/give.js";
import { type SharedFlags, withWorkspace } from "../../flags/shared.js";
import { positive } from "../../flags/values.js";
import { endWith } from "../../output/ending.js";

/** A command that orders something of a run. */
export function defineOrder(program: Command, what: "pause" | "cancel", description: string): void {
  withWorkspace(program.command(what))
    .description(description)
    .argument("[run]", "number of the run (default: the one at work, else the newest unfinished)", positive)
    .action((run: number | undefined, flags: SharedFlags) => give(what, run, flags));
}

async function give(what: "pause" | "cancel", which: number | undefined, flags: SharedFlags): Promise<void> {
  const [
    { carriedOutHere, giveOrder },
    { runMeant },
    { settledWorkspace },
    { interruption },
    { systemClock },
  ] = await Promise.all([
    import("../../../job/orders/give.js"),
    import("../../../job/workspace/find-run.js"),
    import("../../output/session.js"),
    import("../../output/signals.js"),
    import("../../../system.js"),
  ]);
  const options = {
    workspace: settledWorkspace(flags),
    clock: systemClock,
    signal: interruption(),
    onSlow: onSlow(flags),
  };
  const wanted: WantedOrder = async (store, holder) => ({
    run: await runMeant(store, which, holder),
    order: { do: what },
  });
  showCarried(await giveOrder(options, wanted, () => carriedOutHere(options, wanted)), flags);
  endWith("done");
}

/** Tells on stderr that the process at work takes its time. */
export function onSlow({ quiet }: Pick<SharedFlags, "quiet">): (line: string) => void {
  return (line) => {
    if (!quiet) process.stderr.write(`bulkgen: ${line}\n`);
  };
}

/** Prints what came of an order. */
export function showCarried({ run, order, kind, message, by }: Carried, { json }: SharedFlags): void {
  const text = json
    ? JSON.stringify({
        run: run.id,
        order: order.do,
        done: kind === "done",
        process: by?.pid ?? null,
        message,
      })
    : message;
  process.stdout.write(`${text}\n`);
}
