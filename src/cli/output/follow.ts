import type { ExitName } from "../../core/exit.js";
import type { RunSummary } from "../../job/run/closing.js";
import type { RunEnd } from "../../job/run/events.js";
import type { Outcome } from "../../job/run/run-job.js";
import type { Machine } from "../../machine.js";
import type { CarryFlags } from "../../options/shared.js";
import { nextStepFrom } from "../../report/next-step.js";
import { shownPath } from "../../report/problem-text.js";
import { summarise, summaryJson, summaryOf } from "../../report/summary.js";
import { sandboxFlag } from "../../text/shell.js";
import { elsewhere, flagsTo } from "../settings/workspace.js";
import type { Display } from "./display.js";
import { exitOf, nextOf, reasonOf } from "./ending.js";
import type { PreparedRun } from "./job-options.js";
import { print } from "./print.js";

/**
 * Does the work of a run and reports its end to everybody who follows it: the user, `--events` and every `--notify`.
 * A run that could not start is notified as well: a nightly job with a revoked key is what the user must hear about. A
 * mistake in the command, the settings or the manifest is not, unless a schedule started the run.
 * By then the workspace is free again. Returns or throws what the work did. With `tell`, the caller prints the summary.
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
  tell?: (facts: RunSummary) => void,
): Promise<ExitName> {
  let facts: RunSummary | null = null;
  try {
    const exit = await work(async (outcome) => {
      const end = await showOutcome(outcome, flags, { display, machine }, tell);
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
    if (exit !== "done") {
      const why = await reasonOf(error as Error, machine.cwd);
      const next = nextOf(error as Error, machine.cwd, sandboxFlag(flags));
      await notifier?.ended(exit, facts, why, next);
    }
    throw error;
  } finally {
    await events?.close();
  }
}

/** Prints the summary of a run, on stderr if stdout is for events, and returns how the run ended. */
async function showOutcome(
  outcome: Outcome,
  flags: { json?: boolean; events?: boolean; quiet?: boolean },
  { display, machine }: { display: Display; machine: Machine },
  tell: ((facts: RunSummary) => void) | undefined,
): Promise<RunEnd> {
  const { exit } = outcome.execution;
  const { left, ...made } = await summaryOf(outcome, machine.clock);
  const look = made.facts.counts.archived === 0 ? null : await galleryCommand(outcome, machine);
  const facts = { ...made.facts, look };
  display.end();
  const stream = flags.events ? machine.stderr : machine.stdout;
  const { skipped } = facts;
  const shown = {
    ...facts,
    nextStep: nextStepFrom(
      left,
      machine.cwd,
      elsewhere(outcome.opened.workspace, left.run.options.sandbox, machine),
    ),
    skipped: skipped && { ...skipped, file: shownPath(skipped.file, machine.cwd) },
  };
  // Cron sends mail about whatever is printed.
  const isSilent = flags.quiet && !flags.json && exit === "done";
  if (tell !== undefined) tell(facts);
  else if (!isSilent)
    print(flags, { ...machine, stdout: stream }, "run", summaryJson(facts), (style) =>
      summarise(shown, style, machine.cwd),
    );
  return { exit, facts, stops: outcome.execution.stops };
}

/** The command that makes the gallery of the run's job, from the current folder. */
async function galleryCommand({ execution, opened }: Outcome, machine: Machine): Promise<string> {
  const { run } = execution;
  const { sandbox } = run.options;
  const newest = await opened.store.run("newest");
  const number = newest?.jobId === run.jobId ? "" : ` ${run.id}`;
  return `bulkgen gallery${number}${flagsTo(opened.workspace, sandbox, machine)}`;
}
