import type { Command } from "commander";
import { endWith } from "./ending.js";
import { withCarry, withService } from "./flags.js";
import type { CarryFlags } from "./job-options.js";
import { type SelectionFlags, selectionOf, withSelection } from "./selection-flags.js";

export function defineRedo(program: Command): void {
  withCarry(withSelection(withService(program.command("redo"))))
    .description("make new variants of items, priced first; the old files stay")
    .argument(
      "[items...]",
      "row ids, paths of files, or task ids; without them, what is selected of the newest run",
    )
    .option("--yes", "do not ask before spending (required without a terminal)")
    .action(redo);
}

interface RedoFlags extends CarryFlags, SelectionFlags {
  yes?: boolean;
}

async function redo(items: string[], flags: RedoFlags): Promise<void> {
  const [{ continueJob }, { redoItems }, { jobOptions, settledWorkspace }, { askPrice }, { followed }] =
    await Promise.all([
      import("../job/continue-job.js"),
      import("../job/redo.js"),
      import("./job-options.js"),
      import("./consent.js"),
      import("./follow.js"),
    ]);
  const prepared = await jobOptions(flags, settledWorkspace(flags));
  const redo = redoItems(items, selectionOf(flags), (made, credits) =>
    askPrice({ what: "made anew", items: made, credits }, flags, prepared),
  );
  const exit = await followed(prepared, flags, (show) => continueJob(prepared.options, redo, show));
  endWith(exit);
}
