import { jobFolder } from "../../archive/disk/names.js";
import { exitCode } from "../../core/exit.js";
import type { Outcome } from "../../job/run/run-job.js";
import type { RunSummary } from "../../job/run/summary.js";
import { blockedIn } from "../../job/workspace/blocked.js";
import { spentIn, waitingIn } from "../../job/workspace/evidence.js";
import { type LeftToDo, leftToDo } from "../../job/workspace/left-to-do.js";
import { failuresOf } from "../../job/workspace/status.js";
import { findWorkspace } from "../../job/workspace/workspace.js";
import type { Machine } from "../../machine.js";
import { nextStep } from "../../report/next-step.js";
import { shownPath } from "../../report/problem-text.js";
import { summarise, summaryJson } from "../../report/summary.js";
import { shellWord } from "../../text/shell.js";
import { terminalStyle } from "../../text/table.js";
import { jsonText } from "../../text/terminal.js";
import type { Display } from "./display.js";
import type { RunEnd } from "./events.js";

/** Prints the summary of a run, on stderr if stdout is for events, and returns how the run ended. */
export async function showOutcome(
  outcome: Outcome,
  flags: { json?: boolean; events?: boolean },
  { display, machine }: { display: Display; machine: Machine },
): Promise<RunEnd> {
  const { exit } = outcome.execution;
  const { facts, left } = await factsOf(outcome, machine);
  display.end();
  const stream = flags.events ? machine.stderr : machine.stdout;
  const { skipped } = facts;
  const shown = {
    ...facts,
    nextStep: nextStepHere(left, outcome, machine),
    skipped: skipped && { ...skipped, file: shownPath(skipped.file, machine.cwd) },
  };
  const text = flags.json
    ? jsonText(summaryJson(facts))
    : summarise(shown, terminalStyle(stream, machine.env), machine.cwd);
  stream.write(`${text}\n`);
  return { exit, facts, stops: outcome.execution.stops };
}

async function factsOf(outcome: Outcome, machine: Machine): Promise<{ facts: RunSummary; left: LeftToDo }> {
  const { execution, opened, startedAt, skipped, before } = outcome;
  const { clock } = machine;
  const { run, exit, counts, reasons, balance, lastBalance, creditCheck } = execution;
  const unfinished = exit === "unfinished";
  const items = await opened.store.items(run.id, ["failed", "held", "unknown", "overdue"]);
  const left = await leftToDo(opened.store, run, items);
  const { nextPollAt } = left;
  const facts: RunSummary = {
    run: run.id,
    job: run.jobName,
    exitCode: exitCode(exit),
    counts,
    skipped,
    before,
    failures: failuresOf(items),
    held: await waitingIn(opened.store, items, "held"),
    unknown: await waitingIn(opened.store, items, "unknown"),
    overdue: await waitingIn(opened.store, items, "overdue"),
    blocked: await blockedIn(opened.store, run.id),
    awaiting: left.awaiting,
    nextPollAt,
    resumeAt: unfinished ? (execution.resumeAt ?? nextPollAt) : null,
    stops: reasons,
    ...(await spentIn(opened.store, run.id)),
    left: balance,
    lastLeft: lastBalance,
    creditCheck,
    requests: run.requests,
    // Of a continued run, this process saw only a part.
    forecast: run.startedAt >= startedAt ? (run.options.forecast ?? null) : null,
    elapsedMs: clock.now() - startedAt,
    ...(await opened.store.filesOf(run.id)),
    folder: jobFolder(run),
    nextStep: nextStep(left),
    look: counts.archived === 0 ? null : await galleryCommand(outcome, machine),
  };
  return { facts, left };
}

/** What to do next, and in which folder, where another workspace or none is found from the current one. */
function nextStepHere(left: LeftToDo, { opened }: Outcome, { cwd, env }: Machine): string | null {
  const { root } = opened.workspace;
  if (findWorkspace({ cwd, sandbox: left.run.options.sandbox, env }).root === root)
    return nextStep(left, cwd);
  const step = nextStep(left, root);
  return step && `in ${shownPath(root, cwd)}: ${step}`;
}

/** The command that makes the gallery of the run's job, from the current folder. */
async function galleryCommand({ execution, opened }: Outcome, { cwd, env }: Machine): Promise<string> {
  const { run } = execution;
  const { sandbox } = run.options;
  const { root } = opened.workspace;
  const newest = await opened.store.run("newest");
  const words = [
    "bulkgen",
    "gallery",
    ...(newest?.jobId === run.jobId ? [] : [String(run.id)]),
    ...(findWorkspace({ cwd, sandbox, env }).root === root ? [] : ["--workspace", shownPath(root, cwd)]),
    ...(sandbox ? ["--sandbox"] : []),
  ];
  return words.map(shellWord).join(" ");
}
