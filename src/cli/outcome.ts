import { type ExitName, exitCode, weightiest } from "../core/exit.js";
import type { Item } from "../core/store.js";
import type { Outcome } from "../job/run-job.js";
import { lookFor } from "../report/look.js";
import { type RunFacts, summarise, summaryJson } from "../report/summary.js";
import { jobFolder } from "../run/folder.js";
import { systemClock } from "../system.js";
import type { Display } from "./display.js";
import type { RunEnd } from "./events.js";

/** Prints what the run came to, on stderr when stdout is for events, and returns it. */
export async function showOutcome(
  outcome: Outcome,
  flags: { json?: boolean; events?: boolean },
  display: Display,
): Promise<RunEnd> {
  const exit = weightiest([outcome.execution.exit, ...(outcome.leftOut > 0 ? (["credits"] as const) : [])]);
  const facts = await factsOf(outcome, exit);
  display.end();
  const stream = flags.events ? process.stderr : process.stdout;
  stream.write(
    `${flags.json ? JSON.stringify(summaryJson(facts)) : summarise(facts, lookFor(stream, process.env))}\n`,
  );
  return { exit, facts, stops: outcome.execution.stops };
}

async function factsOf(outcome: Outcome, exit: ExitName): Promise<RunFacts> {
  const { execution, hold, startedAt } = outcome;
  const { run, counts, reasons, balance, books } = execution;
  const items = await hold.store.items(run.id);
  const { charged, pending } = await hold.store.spending(run.id);
  return {
    run: run.id,
    job: run.jobName,
    exitCode: exitCode(exit),
    counts,
    before: outcome.before,
    failures: inState(items, "failed").map((item) => ({ ...item, kind: item.failureKind ?? "unknown" })),
    held: inState(items, "held"),
    stops: [...reasons, ...leftOutText(outcome)],
    spent: charged,
    pending,
    left: balance,
    books,
    requests: run.requests,
    elapsedMs: systemClock.now() - startedAt,
    ...(await hold.store.filesOf(run.id)),
    folder: jobFolder(run),
    nextStep: nextSteps[exit] ?? null,
  };
}

function inState(items: readonly Item[], state: Item["state"]) {
  return items
    .filter((item) => item.state === state)
    .map(({ rowId, note, failureKind }) => ({ rowId, failureKind, reason: note ?? "no reason is known" }));
}

function leftOutText({ leftOut }: Outcome): string[] {
  return leftOut === 0 ? [] : [`${leftOut} items were left out because the credits do not reach them`];
}

/** What to do after each way to end. */
const nextSteps: Partial<Record<ExitName, string>> = {
  key: "set a valid key of the same user, or activate a plan, then `bulkgen resume`",
  unreachable: "`bulkgen resume` when the service is back",
  credits: "top up, then run the same command again",
  held: "find their tasks at the service, then `bulkgen resolve ITEM --adopt TASK`, or --resubmit, or --skip",
  cap: "raise --max-credits and run the same command again",
  unfinished: "`bulkgen resume` later",
  failed: "mend the rows that failed and run again; nothing archived is paid twice",
  interrupted: "`bulkgen resume` goes on; tasks at the service go on without us",
};
