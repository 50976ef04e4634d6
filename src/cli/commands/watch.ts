import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { outputsPlace } from "../../workspace/outputs-place.js";
import { openNews } from "../../workspace/state.js";
import { watchRun } from "../../workspace/watched-run.js";
import type { Workspace } from "../../workspace/workspace.js";
import { openDisplay } from "../output/open-display.js";

const watchMs = 1_000;

/**
 * Shows a run that another process executes until it ends: what the process itself would show. Returns at once if none
 * does. Throws EarlyExit when interrupted, which ends nothing but the watching.
 */
export async function watch(
  workspace: Workspace,
  which: number | undefined,
  quiet: boolean,
  machine: Machine,
): Promise<void> {
  const { clock, stdout } = machine;
  const watched = await watchRun(workspace, which ?? "newest", clock);
  if (watched === null) return;
  const { run, since } = watched;
  const interrupt = machine.interrupt();
  const display = openDisplay(quiet, machine, stdout);
  try {
    display.begin({
      id: run.id,
      sandbox: run.options.sandbox,
      jobName: run.jobName,
      folder: outputsPlace(run),
      elapsedMs: clock.now() - since,
      news: () => openNews(workspace, run.id, clock),
    });
    for (;;) {
      const progress = await watched.progress();
      if (progress === null) return;
      display.progress(progress);
      await clock.sleep(watchMs, interrupt);
      if (interrupt.aborted) break;
    }
  } finally {
    display.end();
    await watched.close();
  }
  throw new EarlyExit("interrupted", `interrupted. Run ${run.id} continues.`);
}
