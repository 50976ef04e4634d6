import { join } from "node:path";
import type { Clock } from "../../clock.js";
import { type ExitName, exitCode } from "../../core/exit.js";
import type { ItemEvent } from "../../core/item.js";
import { toNumber } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import type { Reason } from "../../core/reason.js";
import type { Stop } from "../../core/stop.js";
import type { RunEvent } from "../../documents/run.js";
import type { Progress } from "../../run/loop.js";
import type { ItemStep, Steps } from "../../store/workspace/steps.js";
import { isoOrNull } from "../../text/times.js";
import { outputsPlace } from "../../workspace/outputs-place.js";
import { type Opened, openSteps, type StatePlace } from "../../workspace/state.js";
import type { RunSummary } from "./closing.js";

/** An event without what all have in common. */
type RunEventFacts = RunEvent extends infer Event
  ? Event extends RunEvent
    ? Omit<Event, "time" | "run">
    : never
  : never;
type RunEndFacts = Omit<Extract<RunEvent, { event: "run_finished" }>, "time" | "run" | "event">;

/** Reports a run's events. */
export interface Events {
  /** Resolves when the steps from now on will be reported. */
  begin(run: Run): Promise<void>;
  progress(progress: Progress): void;
  /** A request of the run's preparation waits. */
  waiting(reason: Reason): void;
  /** Resolves when everything is reported. Rejects if the steps could not be read. */
  finish(end: RunEnd): Promise<void>;
  /** Call it also for a run that ends without `finish`. */
  close(): Promise<void>;
}

/** How a run ended. */
export interface RunEnd {
  exit: ExitName;
  facts: RunSummary;
  stops: readonly Stop[];
}

type PublicItemEvent = Extract<RunEvent, { rowId: string }>["event"];

/** Steps that become events, with the event's name. The others mean nothing outside bulkgen. */
const publicEvents: Readonly<Partial<Record<ItemEvent, PublicItemEvent>>> = {
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

export function openEvents(place: StatePlace, clock: Clock, emit: (event: RunEvent) => void): Events {
  let run: Run | null = null;
  let steps: Opened<Steps> | null = null;
  let seen = 0;
  let stopped: readonly Stop[] = [];
  let wait: Reason | null = null;
  let reported: Promise<void> = Promise.resolve();

  /** Reports in the order in which things happened, although steps take time to read. */
  const report = (work: (now: number) => Promise<void> | void) => {
    const now = clock.now();
    reported = reported.then(() => work(now));
    // `finish` reports the error.
    reported.catch(() => undefined);
  };
  const emitAt = (at: number, { event, ...facts }: RunEventFacts) =>
    emit({ event, time: new Date(at).toISOString(), run: run?.id ?? null, ...facts } as RunEvent);
  const writeSteps = async () => {
    if (!run || !steps) return;
    for (const step of await steps.after(run.id, seen)) {
      seen = step.number;
      const event = publicEvents[step.event];
      if (event) emitAt(step.at, itemFacts(event, step, run));
    }
  };
  const writeStops = (stops: readonly Stop[], now: number) => {
    const added = stops.filter((stop) => !stopped.includes(stop));
    const lifted = stopped.filter((stop) => !stops.includes(stop));
    for (const { kind, message } of added) emitAt(now, { event: "stopped", kind, message });
    for (const { kind } of lifted) emitAt(now, { event: "continued", kind });
    stopped = stops;
  };
  const writeWait = (reason: Reason, now: number) => {
    // The same wait is reported many times until it is over.
    const isSame = wait?.kind === reason.kind && (wait.until ?? now + 1) > now;
    if (isSame) return;
    wait = reason;
    const { kind, text, until } = reason;
    emitAt(now, { event: "waiting", for: kind, message: text, until: isoOrNull(until) });
  };
  const close = async () => {
    await reported.catch(() => undefined);
    await steps?.close();
    steps = null;
  };

  return {
    async begin(begun) {
      report(async (now) => {
        run = begun;
        steps = await openSteps(place, clock);
        seen = await steps.newest();
        emitAt(now, {
          event: "run_started",
          job: run.jobName,
          manifest: run.manifest,
          folder: outputsPlace(run),
          sandbox: run.options.sandbox,
        });
      });
      await reported;
    },
    progress: (progress) =>
      report(async (now) => {
        await writeSteps();
        writeStops(progress.stops, now);
        const { reason } = progress;
        // What ends a run is reported as `stopped`.
        if (reason === null || reason.kind === "stopping") wait = null;
        else writeWait(reason, now);
      }),
    waiting: (reason) => report((now) => writeWait(reason, now)),
    async finish({ exit, facts, stops }) {
      report(async (now) => {
        await writeSteps();
        writeStops(stops, now);
        emitAt(now, { event: "run_finished", ...endFacts(exit, facts) });
      });
      try {
        await reported;
      } finally {
        await close();
      }
    },
    close,
  };
}

function itemFacts(event: PublicItemEvent, step: ItemStep, run: Run): RunEventFacts {
  const credits = step.charged === null ? null : toNumber(step.charged);
  const item = { rowId: step.rowId, model: step.model, attempt: step.attempt, taskId: step.taskId };
  switch (event) {
    case "failed":
      return { event, ...item, credits: credits ?? 0, kind: step.failureKind, message: step.note };
    case "held":
      return { event, ...item, credits, message: step.note };
    case "archived":
      return { event, ...item, credits, files: step.files.map((file) => placed(run, file)) };
    case "retried":
      return { event, ...item, message: step.note };
    default:
      return { event, ...item, credits };
  }
}

/** A file's absolute path, or its address in a bucket. */
function placed(run: Run, file: string): string {
  const place = outputsPlace(run);
  return place.startsWith("s3://") ? `${place}/${file}` : join(place, file);
}

function endFacts(exit: ExitName, facts: RunSummary): RunEndFacts {
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
