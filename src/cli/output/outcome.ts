import type { RunEnd } from "../../job/run/events.js";
import type { Outcome } from "../../job/run/run-job.js";
import type { Machine } from "../../machine.js";
import { nextStepFrom } from "../../report/next-step.js";
import { shownPath } from "../../report/problem-text.js";
import { summarise, summaryJson, summaryOf } from "../../report/summary.js";
import { shellWord } from "../../text/shell.js";
import { elsewhere } from "../settings/workspace.js";
import type { Display } from "./display.js";
import { print } from "./print.js";

/** Prints the summary of a run, on stderr if stdout is for events, and returns how the run ended. */
export async function showOutcome(
  outcome: Outcome,
  flags: { json?: boolean; events?: boolean },
  { display, machine }: { display: Display; machine: Machine },
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
  print(flags, { ...machine, stdout: stream }, "run", summaryJson(facts), (style) =>
    summarise(shown, style, machine.cwd),
  );
  return { exit, facts, stops: outcome.execution.stops };
}

/** The command that makes the gallery of the run's job, from the current folder. */
async function galleryCommand({ execution, opened }: Outcome, machine: Machine): Promise<string> {
  const { run } = execution;
  const { sandbox } = run.options;
  const root = elsewhere(opened.workspace, sandbox, machine);
  const newest = await opened.store.run("newest");
  const words = [
    "bulkgen",
    "gallery",
    ...(newest?.jobId === run.jobId ? [] : [String(run.id)]),
    ...(root === null ? [] : ["--workspace", shownPath(root, machine.cwd)]),
    ...(sandbox ? ["--sandbox"] : []),
  ];
  return words.map(shellWord).join(" ");
}
