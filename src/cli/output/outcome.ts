import { jobFolder } from "../../archive/disk/names.js";
import { type ExitName, exitCode, weightiest } from "../../core/exit.js";
import { type Credits, plus, toNumber } from "../../core/money.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import type { StopKind } from "../../core/stop.js";
import type { Outcome } from "../../job/run/run-job.js";
import type { RunSummary } from "../../job/run/summary.js";
import { afterText, heldAdvice, reasonOf, spentIn, waitingIn } from "../../job/workspace/evidence.js";
import { findWorkspace } from "../../job/workspace/workspace.js";
import type { Machine } from "../../machine.js";
import { shownPath } from "../../report/problem-text.js";
import { summarise, summaryJson } from "../../report/summary.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { terminalStyle } from "../../text/table.js";
import { jsonText } from "../../text/terminal.js";
import type { Display } from "./display.js";
import type { RunEnd } from "./events.js";

const namesMax = 5;

/** Prints the summary of a run, on stderr if stdout is for events, and returns how the run ended. */
export async function showOutcome(
  outcome: Outcome,
  flags: { json?: boolean; events?: boolean },
  { display, machine }: { display: Display; machine: Machine },
): Promise<RunEnd> {
  const exit = weightiest([outcome.execution.exit, ...(outcome.leftOut > 0 ? (["credits"] as const) : [])]);
  const facts = await factsOf(outcome, exit, machine);
  display.end();
  const stream = flags.events ? machine.stderr : machine.stdout;
  const { skipped } = facts;
  const shown = {
    ...facts,
    folder: shownPath(facts.folder, machine.cwd),
    skipped: skipped && { ...skipped, file: shownPath(skipped.file, machine.cwd) },
  };
  const text = flags.json
    ? jsonText(summaryJson(facts))
    : summarise(shown, terminalStyle(stream, machine.env));
  stream.write(`${text}\n`);
  return { exit, facts, stops: outcome.execution.stops };
}

async function factsOf(outcome: Outcome, exit: ExitName, machine: Machine): Promise<RunSummary> {
  const { clock } = machine;
  const { execution, opened, startedAt } = outcome;
  const { run, counts, reasons, balance, lastBalance, creditCheck } = execution;
  const unfinished = exit === "unfinished";
  const items = await opened.store.items(run.id, ["failed", "held", "unknown", "overdue"]);
  const overdue = await waitingIn(opened.store, items, "overdue");
  const looks = items.filter((item) => item.state === "overdue").map((item) => item.nextAt);
  const nextPollAt = looks.length === 0 ? null : Math.min(...looks);
  return {
    run: run.id,
    job: run.jobName,
    exitCode: exitCode(exit),
    counts,
    skipped: outcome.skipped,
    before: outcome.before,
    failures: failuresOf(items),
    held: await waitingIn(opened.store, items, "held"),
    unknown: await waitingIn(opened.store, items, "unknown"),
    overdue,
    nextPollAt,
    resumeAt: unfinished ? (execution.resumeAt ?? nextPollAt) : null,
    stops: [...reasons, ...leftOutText(outcome)],
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
    nextStep: nextStep(exit, execution, {
      overdue,
      nextPollAt,
      capNeeded: await capNeeded(opened.store, run),
      leftOut: outcome.leftOut,
    }),
    look: counts.archived === 0 ? null : await galleryCommand(outcome, machine),
  };
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

/** The cap that covers what is spent or open, and the items that are left. */
async function capNeeded(store: Store, { id }: Run): Promise<Credits> {
  const { charged, pending } = await store.spending(id);
  const groups = await store.waiting(id, { models: [], prices: [] });
  return plus(charged, pending, ...groups.map(({ credits }) => credits));
}

function failuresOf(items: readonly Item[]): RunSummary["failures"] {
  return items
    .filter((item) => item.state === "failed")
    .map((item) => ({ rowId: item.rowId, kind: item.failureKind ?? "unknown", reason: reasonOf(item) }));
}

function leftOutText({ leftOut }: Outcome): string[] {
  if (leftOut === 0) return [];
  return [`${count(leftOut, "item was", "items were")} left out because the credits do not cover them`];
}

interface NextStepFacts extends Pick<RunSummary, "overdue" | "nextPollAt"> {
  capNeeded: Credits;
  /** Items that the credits did not cover. */
  leftOut: number;
}

/** What to do next, by how the run ended. */
function nextStep(
  exit: ExitName,
  { run, reasons, stops, counts, resumeAt }: Outcome["execution"],
  { overdue, nextPollAt, capNeeded, leftOut }: NextStepFacts,
): string | null {
  const { sandbox } = run.options;
  const resumeWith = (flags: string) =>
    `\`bulkgen resume ${run.id}${flags === "" ? "" : ` ${flags}`}${sandbox ? " --sandbox" : ""}\``;
  const resume = `\`bulkgen resume${sandbox ? " --sandbox" : ""}\``;
  if (run.state === "cancelled") return run.owes ? `${resume} collects what is still at the service` : null;
  if (stops.some(({ kind }) => kind === "paused"))
    return `${resume} continues; submitted tasks keep running at the service`;
  const steps: Partial<Record<ExitName, string>> = {
    key: `set a valid key of the same user (BULKGEN_API_KEY or --api-key-file), or activate a plan, then ${resume}`,
    unreachable: `${resume} when the service is reachable again`,
    credits: leftOut > 0 ? `top up, then ${runAgain(run)}` : `top up, then ${resume}`,
    held: heldAdvice(sandbox),
    cap: afterCap(stops, run, { resumeWith, capNeeded, left: counts.planned }),
    unfinished:
      counts.unknown > 0 && reasons.length === 0
        ? `${resume} ${resumeAt === null ? "later" : afterText(resumeAt)} finds out whether ${count(counts.unknown, "lost request")} ${counts.unknown === 1 ? "was" : "were"} charged`
        : nextPollAt === null || reasons.length > 0
          ? `${resume} ${resumeAt === null ? "later" : afterText(resumeAt)}`
          : `${resume} ${afterText(nextPollAt)}, when ${namesOf(overdue)} can be polled again`,
    failed: "fix the failed rows and run again; archived items are never charged twice",
    interrupted: `${resume} continues; submitted tasks keep running at the service`,
  };
  return steps[exit] ?? null;
}

/** How to continue after a cap, by which cap it was. */
function afterCap(
  stops: Outcome["execution"]["stops"],
  run: Run,
  {
    resumeWith,
    capNeeded,
    left,
  }: { resumeWith: (flags: string) => string; capNeeded: Credits; left: number },
): string {
  const resume = resumeWith("");
  const steps: Partial<Record<StopKind, string>> = {
    cap: `${count(left, "item is", "items are")} left: ${resumeWith(`--max-credits ${toNumber(capNeeded)}`)}`,
    keep: `top up, then ${resume}; or ${resumeWith("--keep-credits N")} with a lower N`,
    daily: `${resume} continues tomorrow; to continue now, ${resumeWith("--max-credits-per-day N")} with a higher N`,
    failures: `find out why they failed, then ${resumeWith("--max-failures N")}`,
  };
  const reached = stops.map(({ kind }) => steps[kind]).find((step) => step !== undefined);
  if (reached !== undefined) return reached;
  return run.options.modelCaps === undefined
    ? `check the model's new price, then ${runAgain(run)}`
    : `${resumeWith("--max-credits-per-model MODEL=N")} with a higher N`;
}

/** The command that plans the run's manifest again, as the same edition and under the same cap. */
function runAgain({ manifest, edition, options: { maxCredits, sandbox } }: Run): string {
  const words = [
    "bulkgen",
    "run",
    manifest,
    ...(edition === "" ? [] : ["--edition", edition]),
    ...(maxCredits === null ? [] : ["--max-credits", String(toNumber(maxCredits))]),
    ...(sandbox ? ["--sandbox"] : []),
  ];
  return `\`${words.map(shellWord).join(" ")}\``;
}

/** The first few row ids, and how many more there are. */
function namesOf(items: readonly { rowId: string }[]): string {
  const named = items
    .slice(0, namesMax)
    .map(({ rowId }) => rowId)
    .join(", ");
  return items.length <= namesMax ? named : `${named} and ${items.length - namesMax} more`;
}
