import { join } from "node:path";
import type { Clock } from "../../clock.js";
import { type ExitName, exitCode } from "../../core/exit.js";
import type { FailureKind } from "../../core/failure.js";
import type { ItemEvent } from "../../core/item.js";
import { toNumber } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import type { Reason, ReasonKind } from "../../core/reason.js";
import type { Stop, StopKind } from "../../core/stop.js";
import type { Progress } from "../../run/loop.js";
import type { ItemStep, Steps } from "../../store/workspace/steps.js";
import { isoOrNull } from "../../text/times.js";
import { outputsPlace } from "../../workspace/outputs-place.js";
import { type Opened, openSteps, type StatePlace } from "../../workspace/state.js";
import type { RunSummary } from "./closing.js";

/**
 * What happens in a run, for programs that follow it. Credits are plain numbers. Events of items are read from the
 * steps that the store has committed: a crash cannot undo them, and each step is reported once.
 */
export type RunEvent = EventHead & RunEventFacts;

interface EventHead {
  /** When it happened: ISO 8601, UTC. */
  time: string;
  /** The run's number in its workspace; null before it has one. */
  run: number | null;
}

type RunEventFacts =
  /** The run and its items are recorded; nothing has been submitted yet. `folder` is where its files go. */
  | { event: "run_started"; job: string; manifest: string; folder: string; sandbox: boolean }
  /** The service accepted the paid request and charged `credits`; null if it did not say how much. */
  | (ItemFacts & Charged & { event: "submitted" })
  /** The task is done. Its outputs are not saved yet. */
  | (ItemFacts & Charged & { event: "completed" })
  /** All outputs are saved and durable; `files` are their absolute paths. */
  | (ItemFacts & Charged & { event: "archived"; files: string[] })
  /** The task failed, or the request was refused as wrong; it cost nothing. */
  | (ItemFacts & Charged & { event: "failed"; kind: FailureKind | null; message: string | null })
  /** A failed item is submitted again. */
  | (ItemFacts & { event: "retried"; message: string | null })
  /** It may have been charged without a result: a person has to decide, with `bulkgen resolve`. */
  | (ItemFacts & Charged & { event: "held"; message: string | null })
  /** Nothing is bought or sent for now, for this reason; until then (ISO 8601), or null if nobody knows until when. */
  | { event: "waiting"; for: ReasonKind; message: string; until: string | null }
  /** Nothing more is submitted, for this reason. */
  | { event: "stopped"; kind: StopKind; message: string }
  /** The reason is gone. */
  | { event: "continued"; kind: StopKind }
  | ({ event: "run_finished" } & RunEndFacts);

interface ItemFacts {
  rowId: string;
  model: string;
  /** 1 for the item's first paid request; null before there was one. */
  attempt: number | null;
  /** The task's id at the service. */
  taskId: string | null;
}

interface Charged {
  /** Charged for it; null if unknown. */
  credits: number | null;
}

interface RunEndFacts {
  job: string;
  /** The exit code that the command ends with, and its name: `done` when every item is archived. */
  exit: number;
  exitName: ExitName;
  /** The run's items by state. */
  counts: RunSummary["counts"];
  /** `pending` is in flight, at the service or held. `left` is the balance; null if it could not be read. */
  credits: { spent: number; pending: number; left: number | null };
  /** API requests of the run, over all its resumes. */
  requests: number;
  elapsedMs: number;
  files: number;
  bytes: number;
  folder: string;
  /** What to do now, as a command or a sentence; null if nothing is left to do. */
  nextStep: string | null;
}

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

type PublicItemEvent = Extract<RunEventFacts, ItemFacts>["event"];

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
