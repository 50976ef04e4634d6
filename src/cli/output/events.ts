import { join } from "node:path";
import { jobFolder } from "../../archive/disk/job-folder.js";
import type { Clock } from "../../clock.js";
import { type ExitName, exitCode } from "../../core/exit.js";
import type { ItemEvent } from "../../core/item.js";
import { toNumber } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import type { Stop } from "../../core/stop.js";
import type { RunSummary } from "../../job/run/summary.js";
import type { Progress } from "../../run/loop.js";
import { type ItemStep, openSteps, type Steps } from "../../store/workspace/steps.js";

/**
 * A run as NDJSON for programs that follow it. What is told of items is read from the steps that the store has
 * committed, so nothing is told that a crash could take back, each step is told once, and none is guessed from counts.
 */
export interface Events {
  begin(run: Run): void;
  progress(progress: Progress): void;
  /** A request waits for its place in the quota until then (UTC ms). */
  waiting(what: "minute" | "day" | "service", until: number): void;
  finish(end: RunEnd): void;
}

/** What a run came to. */
export interface RunEnd {
  exit: ExitName;
  facts: RunSummary;
  stops: readonly Stop[];
}

/** Steps that are told, by the name they are told under. The others are of no use without bulkgen's own tables. */
const told: Readonly<Partial<Record<ItemEvent, string>>> = {
  accepted: "submitted",
  completed: "completed",
  task_failed: "failed",
  rejected: "failed",
  retry: "retried",
  saved: "archived",
  charged: "held",
  undecided: "held",
  unfetchable: "held",
};

export function openEvents(stateFile: string, clock: Clock, write: (line: string) => void): Events {
  let run: Run | null = null;
  let steps: Steps | null = null;
  let seen = 0;
  let stopped: readonly Stop[] = [];
  let wait = { what: "", until: 0 };

  const tell = (event: string, at: number, facts: object) =>
    write(`${JSON.stringify({ event, time: new Date(at).toISOString(), run: run?.id ?? null, ...facts })}\n`);
  const tellSteps = () => {
    if (!run || !steps) return;
    for (const step of steps.after(run.id, seen)) {
      seen = step.number;
      const event = told[step.event];
      if (event) tell(event, step.at, itemFacts(event, step, run));
    }
  };
  const tellStops = (stops: readonly Stop[]) => {
    const added = stops.filter((stop) => !stopped.includes(stop));
    const lifted = stopped.filter((stop) => !stops.includes(stop));
    for (const { kind, message } of added) tell("stopped", clock.now(), { kind, message });
    for (const { kind } of lifted) tell("continued", clock.now(), { kind });
    stopped = stops;
  };
  const waiting = (what: string, until: number) => {
    // The same wait is looked at many times until it is over.
    if (wait.what === what && wait.until > clock.now()) return;
    wait = { what, until };
    tell("waiting", clock.now(), { for: what, until: new Date(until).toISOString() });
  };

  return {
    begin(begun) {
      run = begun;
      steps = openSteps(stateFile);
      seen = steps.newest();
      tell("run_started", clock.now(), {
        job: run.jobName,
        manifest: run.manifest,
        folder: jobFolder(run),
        sandbox: run.options.sandbox,
      });
    },
    progress(progress) {
      tellSteps();
      tellStops(progress.stops);
      const { waiting: what, until } = progress;
      if (what === null || what === "tasks" || until === null) wait = { what: "", until: 0 };
      else waiting(what, until);
    },
    waiting,
    finish({ exit, facts, stops }) {
      tellSteps();
      tellStops(stops);
      tell("run_finished", clock.now(), endFacts(exit, facts));
      steps?.close();
    },
  };
}

function itemFacts(event: string, step: ItemStep, run: Run): object {
  const credits = step.charged === null ? null : toNumber(step.charged);
  const item = { id: step.rowId, model: step.model, attempt: step.attempt, taskId: step.taskId };
  switch (event) {
    case "failed":
      return { ...item, credits: credits ?? 0, kind: step.failureKind, message: step.note };
    case "held":
      return { ...item, credits, message: step.note };
    case "archived":
      return { ...item, credits, files: step.files.map((file) => join(jobFolder(run), file)) };
    case "retried":
      return { ...item, message: step.note };
    default:
      return { ...item, credits };
  }
}

function endFacts(exit: ExitName, facts: RunSummary): object {
  const { counts, requests, elapsedMs, files, bytes, folder, nextStep } = facts;
  return {
    job: facts.job,
    exit: exitCode(exit),
    exitName: exit,
    counts,
    credits: {
      spent: toNumber(facts.spent),
      pending: toNumber(facts.pending),
      left: facts.left === null ? null : toNumber(facts.left),
    },
    requests,
    elapsedMs,
    files,
    bytes,
    folder,
    nextStep,
  };
}
