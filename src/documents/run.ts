import { z } from "zod";
import { failureKinds } from "../core/failure.js";
import { runStates } from "../core/ports/store.js";
import { reasonKinds } from "../core/reason.js";
import { scheduledRunStates } from "../core/scheduled-run.js";
import { stopTable } from "../core/stop.js";
import { forecast } from "./plan.js";
import {
  bytes,
  count,
  counts,
  credits,
  exit,
  exitName,
  itemState,
  job,
  milliseconds,
  nextStep,
  rowId,
  rowNumber,
  runNumber,
  sandbox,
  text,
  time,
  workspace,
} from "./values.js";

/** What a person needs to find an item's newest paid request, or its task, at the service. */
const evidence = {
  sentAt: time("when the item's newest paid request was sent; null if none was").nullable(),
  status: z.int().nullable().describe("the HTTP status of its answer; null if none came"),
  bodySha256: text("the SHA-256 of the request's body").nullable(),
  taskId: text("the task's id at the service").nullable(),
  externalTaskId: text("the task's id at the provider behind the service").nullable(),
};

const waiting = z.strictObject({ rowId, reason: text("why, for people"), ...evidence });
const lost = z
  .array(waiting)
  .describe("requests that were or may have been charged, and whose items were submitted again or skipped");

const failure = z.strictObject({
  rowId,
  kind: z.enum(failureKinds).describe("what kind of failure it was, as `retry --only` names it"),
  reason: text("why, for people"),
});

const spent = credits("charged for good");
const pending = credits("in flight, at the service, unknown or held: charged, or possibly charged");
const lostCredits = credits("the most that lost requests may have cost");
const left = credits("the balance, from GET me; null if it could not be read").nullable();

const stops = z.array(z.string()).describe("why the run ended before all items were done, for people");
const requests = count("API requests of the run, over all its resumes");
const files = count("files that the run archived");
const folder = text("the job's folder; absolute, or with --archive-only its address in the bucket");

const afterLeft = {
  failed: count("files whose command failed"),
  reasons: z.array(z.strictObject({ rowId, reason: text("why, for people") })).describe("of the first ones"),
  left: count("files whose command was not run"),
  set: text("why the command after the set failed; null if it did not").nullable(),
  missing: count(
    "files of the set that are missing on the disk, so that the command after it was not run; absent if none is",
  ).optional(),
};

export const summary = z.strictObject({
  run: runNumber,
  job,
  exit,
  exitName,
  counts,
  skipped: z
    .strictObject({
      rows: count("invalid rows that were left out, whole or some of their combinations"),
      combinations: count("how many combinations of them"),
      file: text("where they are listed; absolute"),
    })
    .nullable()
    .describe("null if no row was left out"),
  before: count("items that were archived before this command began"),
  failures: z.array(failure),
  held: z.array(waiting).describe("items that wait for a person's decision"),
  unknown: z.array(waiting).describe("items whose paid request was not answered"),
  overdue: z.array(waiting).describe("items whose task takes longer than 10 minutes"),
  lost,
  blocked: z
    .array(
      z.strictObject({
        rowId,
        rowNumber,
        reason: text("which item it waits for, and why that does not come"),
        cause: text("the same without the item's name"),
      }),
    )
    .describe("items that wait for outputs of other items"),
  awaiting: z.array(rowId).describe("archived items that wait for a person's approval"),
  nextPollAt: time("when the first overdue task is polled again").nullable(),
  resumeAt: time("when an unfinished run can continue; null if unknown").nullable(),
  stops,
  credits: z.strictObject({
    spent,
    pending,
    lost: lostCredits,
    left,
    counted: credits(
      "how far the key's counter of used credits moved, from GET me; null if not read",
    ).nullable(),
    known: credits("what bulkgen's own record accounts for in that time").nullable(),
  }),
  requests,
  requestsPerItem: z.number().nullable().describe("for each item that the run archived; null if none"),
  forecast: forecast.nullable().describe("from the start of the run; null if it was resumed"),
  elapsedMs: milliseconds("how long this command ran after its price was agreed to"),
  files,
  bytes: bytes("their size"),
  folder,
  after: z
    .strictObject({
      ...afterLeft,
      done: count("files whose command did its work in this execution"),
      setDone: z.boolean().describe("the command after the set did its work in this execution"),
      setWaits: text(
        "what the job still lacks, so that the command after the set was not run although this run ended well; null if nothing",
      ).nullable(),
    })
    .nullable()
    .describe("what became of the commands of --after-file and --after-set; null if the run has none"),
  nextStep,
});

export const resumedAll = z.strictObject({
  exit,
  exitName,
  runs: z.array(
    z.strictObject({
      run: runNumber,
      job,
      exit,
      exitName,
      items: count("items of the run"),
      archived: count("items"),
      failed: count("items"),
      held: count("items"),
      spent,
      nextStep,
      message: text("why it was not continued; null if it was").nullable(),
    }),
  ),
  left: z.array(runNumber).describe("unfinished runs that were not begun, because an earlier one ended it"),
});

const standingCredits = z.strictObject({
  spent,
  pending,
  atService: credits("of the pending ones, those of accepted tasks"),
  lost: lostCredits,
});

export const reason = z
  .strictObject({
    kind: z.enum(reasonKinds).describe("what it waits for"),
    text: text("why, for people"),
    until: time("when the run tries again; null if that depends on something else").nullable(),
  })
  .nullable()
  .describe("why the run in progress buys or sends nothing now; null if it does");

/** What every document says of a run. */
const record = {
  run: runNumber,
  job,
  manifest: text("the manifest; absolute, or `stdin`"),
  edition: text("empty for the first edition"),
  state: z.enum(runStates),
  alive: z.boolean().describe("a process is working on it now"),
  beganBy: z
    .strictObject({
      user: z.string(),
      host: z.string(),
      schedule: text("the schedule that began it").optional(),
      due: time("when it was due").optional(),
    })
    .nullable(),
  startedAt: time("when it began"),
  endedAt: time("when it ended; null until then").nullable(),
  exit: exit.nullable(),
  exitName: exitName.nullable(),
  stops,
  resumeAt: time("when it can continue; null if unknown").nullable(),
  after: z
    .strictObject(afterLeft)
    .nullable()
    .describe("commands after files and the set that have not done their work; null if all have"),
  requests,
};

/** A run, as one of many: for the page and the library, which read page by page. */
export const run = z.strictObject({
  ...record,
  origin: text("the service's address; `sandbox` for any sandbox"),
  folder,
  counts: z
    .partialRecord(itemState, count("items in this state"))
    .describe(
      "the items that the run has now, by state: a later run of the job takes over those that its sheet asks for",
    ),
  awaiting: count("items that wait for approval"),
  credits: z.strictObject({ spent, pending, lost: lostCredits }),
  cap: credits("the most that it may spend; null without a limit").nullable(),
  forecast: forecast.nullable().describe("from the start of the run; null if there was none"),
});
/** A run of a workspace. Credits are numbers, times ISO 8601 in UTC. */
export type RunDocument = z.output<typeof run>;

const overview = {
  ...record,
  crashed: z.boolean().describe("its record says running, but its process is gone"),
  options: z.array(z.string()).describe("its options that are not the defaults, as flags"),
  rebuilt: z.boolean().describe("it was restored by `bulkgen doctor --rebuild`"),
  resume: text("the command that continues it; null if it is done or in progress").nullable(),
  nextStep,
  lockOwner: z
    .strictObject({
      pid: z.int(),
      host: z.string(),
      since: time("since when"),
    })
    .nullable()
    .describe("the process that uses the workspace"),
  credits: standingCredits,
  reason,
};

export const status = z
  .strictObject({
    ...overview,
    counts,
    results: counts
      .nullable()
      .describe(
        "how the run left its items, by state, where a later run of its job may have taken them over; null for the job's latest run",
      ),
    folder,
    forecast: forecast.nullable().describe("from the start of the run; null if there was none"),
    endsAt: time(
      "when the run in progress is expected to end; null if it is not in progress or that is not known",
    ).nullable(),
    trouble: z
      .array(
        z.strictObject({
          rowNumber,
          rowId,
          state: itemState,
          reason: text("why, for people"),
          ...evidence,
          nextAt: time("when its task is polled again; null if no poll is due").nullable(),
        }),
      )
      .describe("items that failed, are held, unknown, overdue or blocked"),
    lost,
  })
  .nullable()
  .describe("null if there are no runs yet");

/**
 * A run as it stands, and its items in trouble: what `bulkgen status --json` prints. Credits are numbers, times ISO 8601 in
 * UTC. `bulkgen/schemas/status.json` says what each field means.
 */
export type StatusDocument = NonNullable<z.output<typeof status>>;

const line = {
  ...overview,
  archived: count("items that this run archived"),
  failed: count("items that failed in it and that no later run took over"),
  held: count("items that it left held"),
};

export const runs = z.strictObject({
  workspace,
  sandbox,
  runs: z.array(z.strictObject(line)).describe("oldest first"),
});

/** A due time of a schedule whose run never began. */
const notBegun = z.strictObject({
  schedule: text("the schedule's name"),
  dueAt: time("when it was due"),
  state: z.enum(scheduledRunStates),
  exit: exit.nullable().describe("the exit code of its process; null if it had none"),
  exitName: exitName.nullable(),
  note: text("why, for people").nullable(),
});

export const report = z.strictObject({
  workspace,
  sandbox,
  since: time("runs that had ended by then are left out"),
  totals: z.strictObject({
    runs: count("runs in this report"),
    notBegun: count("scheduled runs that never began"),
    archived: count("items"),
    failed: count("items"),
    undecided: count("items that are held, or unknown"),
    credits: standingCredits,
  }),
  runs: z.array(
    z.strictObject({
      ...line,
      undecided: count("items that are held, or unknown"),
      failures: z.array(failure),
    }),
  ),
  notBegun: z.array(notBegun),
  by: z
    .strictObject({
      column: text("as it was asked for with --by"),
      groups: z.array(
        z.strictObject({
          value: text("of the column; empty for rows without one"),
          tasks: count("tasks that were paid for"),
          credits: credits("what they cost"),
        }),
      ),
    })
    .nullable()
    .describe("what was spent by the values of a column of the sheets; null without --by"),
});

/**
 * Runs since a given time, and their sums: what `bulkgen report --json` prints. Credits are numbers, times ISO 8601 in UTC.
 * `bulkgen/schemas/report.json` says what each field means.
 */
export type ReportDocument = z.output<typeof report>;

const item = {
  rowId,
  model: text("the model's key"),
  attempt: z
    .int()
    .positive()
    .nullable()
    .describe("1 for the item's first paid request; null before there was one"),
  taskId: text("the task's id at the service").nullable(),
};
const charged = { credits: credits("what was charged for it; null if unknown").nullable() };
const stopKind = z.enum(Object.keys(stopTable) as (keyof typeof stopTable)[]);
const message = text("why, for people").nullable();

function eventOf<const Name extends string, Fields extends z.ZodRawShape>(
  event: Name,
  what: string,
  fields: Fields,
) {
  return z
    .strictObject({
      event: z.literal(event),
      time: time("when it happened"),
      run: runNumber.nullable().describe("the run's number; null before it has one"),
      ...fields,
    })
    .describe(what);
}

export const event = z.discriminatedUnion("event", [
  eventOf("run_started", "the run is on record, nothing is submitted yet", {
    job,
    manifest: text("the manifest; absolute, or `stdin`"),
    folder,
    sandbox,
  }),
  eventOf("submitted", "the service accepted the task", { ...item, ...charged }),
  eventOf("completed", "the task is done; its files are not saved yet", { ...item, ...charged }),
  eventOf("archived", "all files of the item are saved", {
    ...item,
    ...charged,
    files: z.array(z.string()).describe("absolute paths, or addresses in a bucket"),
  }),
  eventOf("failed", "the task failed, or the request was rejected", {
    ...item,
    ...charged,
    kind: z.enum(failureKinds).nullable(),
    message,
  }),
  eventOf("retried", "a failed item is submitted again", { ...item, message }),
  eventOf("held", "a person has to decide", { ...item, ...charged, message }),
  eventOf("waiting", "nothing is bought or sent for now; once for each wait", {
    for: z.enum(reasonKinds).describe("what it waits for"),
    message: text("why, for people"),
    until: time("when the run tries again; null if that depends on something else").nullable(),
  }),
  eventOf("stopped", "nothing more is submitted", { kind: stopKind, message: text("why, for people") }),
  eventOf("continued", "what was reported as stopped is gone", { kind: stopKind }),
  eventOf("run_finished", "the end", {
    job,
    exit,
    exitName,
    counts,
    credits: z.strictObject({ spent, pending, left }),
    requests,
    elapsedMs: milliseconds("how long this command ran after its price was agreed to"),
    files,
    bytes: bytes("their size"),
    folder,
    nextStep,
  }),
]);

/**
 * What happens in a run, for programs that follow it. Credits are plain numbers. Events of items are read from the
 * steps that the store has committed: a crash cannot undo them, and each step is reported once.
 */
export type RunEvent = z.output<typeof event>;

export const order = z.strictObject({
  run: runNumber,
  order: z.enum([
    "pause",
    "cancel",
    "adopt",
    "refetch",
    "accept",
    "skip",
    "approve",
    "reject",
    "resubmit",
    "retry",
    "redo",
  ]),
  done: z.boolean().describe("false if it was refused"),
  process: z.int().nullable().describe("the process that carried it out; null for the command itself"),
  message: text("what was done, or why not, for people"),
});
