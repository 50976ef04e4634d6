import type { Command } from "commander";
import { endWith } from "./ending.js";
import { type SharedFlags, withWorkspace } from "./flags.js";
import { positive } from "./values.js";

/** A command that orders something of a run. */
export function defineOrder(program: Command, what: "pause" | "cancel", description: string): void {
  withWorkspace(program.command(what))
    .description(description)
    .argument("[run]", "number of the run (default: the one at work, else the newest unfinished)", positive)
    .action((run: number | undefined, flags: SharedFlags) => give(what, run, flags));
}

async function give(what: "pause" | "cancel", which: number | undefined, flags: SharedFlags): Promise<void> {
  const [{ giveOrder }, { runMeant }, { settledWorkspace }, { interruption }, { systemClock }] =
    await Promise.all([
      import("../job/give-order.js"),
      import("../job/run-meant.js"),
      import("./job-options.js"),
      import("./signals.js"),
      import("../system.js"),
    ]);
  const carried = await giveOrder(
    {
      workspace: settledWorkspace(flags),
      clock: systemClock,
      signal: interruption(),
      onSlow: (line) => {
        if (!flags.quiet) process.stderr.write(`bulkgen: ${line}\n`);
      },
    },
    async (store, holder) => ({ run: await runMeant(store, which, holder), order: { do: what } }),
  );
  const { run, kind, message, by } = carried;
  const text = flags.json
    ? JSON.stringify({ run: run.id, order: what, done: kind === "done", process: by?.pid ?? null, message })
    : message;
  process.stdout.write(`${text}\n`);
  endWith("done");
}
