import { join } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import type { Clock } from "../../clock.js";
import { type ExitName, exitCode } from "../../core/exit.js";
import type { ItemEvent } from "../../core/item.js";
import { toNumber } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import type { Stop } from "../../core/stop.js";
import type { RunSummary } from "../../job/run/summary.js";
import type { Progress } from "../../run/loop.js";
import { type ItemStep, openSteps, type Steps } from "../../store/workspace/steps.js";
import { jsonText } from "../../text/terminal.js";

/**
 * A run as NDJSON, for programs that follow it. Events of items are read from the steps that the store has committed: a
 * crash cannot undo them, and each step is reported once.
 */
export interface Events {
  begin(run: Run): void;
  progress(progress: Progress): void;
  /** A request waits for a free slot of the quota until then (UTC ms). */
  waiting(what: "minute" | "day" | "service", until: number): void;
  finish(end: RunEnd): void;
}

/** How a run ended. */
export interface RunEnd {
  exit: ExitName;
  facts: RunSummary;
  stops: readonly Stop[];
}

/** Steps that become events, with the event's name. The others mean nothing outside bulkgen. */
const publicEvents: Readonly<Partial<Record<ItemEvent, string>>> = {
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

  const writeEvent = (event: string, at: number, facts: object) =>
    write(`${jsonText({ event, time: new Date(at).toISOString(), run: run?.id ?? null, ...facts })}\n`);
  const writeSteps = () => {
    if (!run || !steps) return;
    for (const step of steps.after(run.id, seen)) {
      seen = step.number;
      const event = publicEvents[step.event];
      if (event) writeEvent(event, step.at, itemFacts(event, step, run));
    }
  };
  const writeStops = (stops: readonly Stop[]) => {
    const added = stops.filter((stop) => !stopped.includes(stop));
    const lifted = stopped.filter((stop) => !stops.includes(stop));
    for (const { kind, message } of added) writeEvent("stopped", clock.now(), { kind, message });
    for (const { kind } of lifted) writeEvent("continued", clock.now(), { kind });
    stopped = stops;
  };
  const waiting = (what: string, until: number) => {
    // The same wait is reported many times until it is over.
    if (wait.what === what && wait.until > clock.now()) return;
    wait = { what, until };
    writeEvent("waiting", clock.now(), { for: what, until: new Date(until).toISOString() });
  };

  return {
    begin(begun) {
      run = begun;
      steps = openSteps(stateFile);
      seen = steps.newest();
      writeEvent("run_started", clock.now(), {
        job: run.jobName,
        manifest: run.manifest,
        folder: jobFolder(run),
        sandbox: run.options.sandbox,
      });
    },
    progress(progress) {
      writeSteps();
      writeStops(progress.stops);
      const { waiting: what, until } = progress;
      if (what === null || what === "tasks" || until === null) wait = { what: "", until: 0 };
      else waiting(what, until);
    },
    waiting,
    finish({ exit, facts, stops }) {
      writeSteps();
      writeStops(stops);
      writeEvent("run_finished", clock.now(), endFacts(exit, facts));
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
