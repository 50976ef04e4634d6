import { EarlyExit, type ExitName } from "../../core/exit.js";
import { digestOf } from "../../core/problem.js";
import type { Outcome } from "../../job/run/run-job.js";
import type { RunSummary } from "../../job/run/summary.js";
import type { Machine } from "../../machine.js";
import { problemsText } from "../../report/problem-text.js";
import type { CarryFlags } from "../flags/shared.js";
import { exitOf } from "./ending.js";
import type { PreparedRun } from "./job-options.js";
import { showOutcome } from "./outcome.js";

/**
 * Does the work of a run and reports its end to everybody who follows it: the user, `--events` and every `--notify`.
 * A run that could not start is notified as well: a nightly job with a revoked key is what the user must hear about.
 * By then the workspace is free again. Returns or throws what the work did.
 */
export async function followed(
  {
    display,
    events,
    notifier,
    gallery,
    machine,
  }: Pick<PreparedRun, "display" | "events" | "notifier" | "gallery" | "machine">,
  flags: CarryFlags,
  work: (show: (outcome: Outcome) => Promise<ExitName>) => Promise<ExitName>,
): Promise<ExitName> {
  let facts: RunSummary | null = null;
  try {
    const exit = await work(async (outcome) => {
      const end = await showOutcome(outcome, flags, { display, machine });
      await events?.finish(end);
      facts = end.facts;
      return end.exit;
    }).finally(display.end);
    await gallery?.ended();
    await notifier?.ended(exit, facts, "");
    return exit;
  } catch (error) {
    const exit = exitOf(error);
    await gallery?.ended();
    // "Nothing to resume" is not worth a notification.
    if (exit !== "done") await notifier?.ended(exit, facts, reasonOf(error as Error, machine));
    throw error;
  } finally {
    await events?.close();
  }
}

/** Why a run could not start, with the first problem of its manifest, for notifications. */
function reasonOf(error: Error, { cwd }: Machine): string {
  const first = error instanceof EarlyExit ? error.problems?.told[0] : undefined;
  if (first === undefined) return error.message;
  return `${error.message}: ${problemsText(digestOf([first.problem]), cwd)}`;
}
