import { z } from "zod";
import { failureKinds } from "../core/failure.js";
import { itemEvents, itemStates } from "../core/item.js";
import { text as anyText, word } from "../launch.js";
import { file } from "./file.js";
import { fleet } from "./fleet.js";
import { item } from "./item.js";
import { forecast, plan } from "./plan.js";
import { reason, run } from "./run.js";
import { schedule } from "./schedules.js";
import {
  count,
  credits,
  flag,
  itemState,
  job,
  milliseconds,
  rowId,
  runNumber,
  sandbox,
  text,
  workspace,
} from "./values.js";

/**
 * What the server of the page answers and is asked, as JSON: the other documents, put together for its views, and what only
 * the page shows. The page takes the types, and the server checks by the schemas what it is asked.
 *
 * What the page counts down or draws is UTC ms (`utcMs`), where the documents for other programs have ISO 8601.
 */
function utcMs(what: string) {
  return z.number().describe(`${what}; UTC ms`);
}

const stateCounts = z.partialRecord(itemState, count("items in this state")).describe("items by state");
export type StateCounts = z.output<typeof stateCounts>;

const quotaWindow = z.strictObject({
  limit: count("the most requests; null if nothing limits them").nullable(),
  used: count("requests that occupy it now"),
});
export type QuotaWindow = z.output<typeof quotaWindow>;

const liveRun = z.strictObject({
  run: runNumber,
  job,
  pid: z.int(),
  host: z.string(),
  since: utcMs("when its process began"),
  counts: stateCounts,
  spent: credits("charged, or possibly charged"),
  cap: run.shape.cap,
  forecastMs: milliseconds("how long all of it is expected to take; null without a forecast").nullable(),
  quota: z.strictObject({
    minute: quotaWindow,
    day: quotaWindow,
    blockedUntil: utcMs("the service has asked for a pause until then").nullable(),
  }),
  newestFile: text("the file that was saved last").nullable(),
  reason: reason
    .unwrap()
    .extend({ until: utcMs("when it tries again").nullable() })
    .nullable(),
});
/** A run in progress, in whichever process, as that process records it. */
export type LiveRun = z.output<typeof liveRun>;

const startedCommand = z.strictObject({
  id: z.int(),
  line: text("as it would be typed"),
  startedAt: utcMs("when it was started"),
  exit: z.int().nullable().describe("its exit code; null while it runs"),
  message: text("what it said last, for people; empty while there is nothing to say"),
});
/** A bulkgen command that the page asked for; of `POST /api/act` as it stands after at most two seconds. */
export type StartedCommand = z.output<typeof startedCommand>;

const standing = z.strictObject({
  workspace,
  sandbox,
  version: text("of bulkgen"),
  database: text("the PostgreSQL database that has its state, without a password; null for files").nullable(),
  now: utcMs("the time"),
  change: text("differs from the one before if anything in the workspace or its schedules has changed"),
  running: liveRun.nullable(),
  waiting: z.strictObject({ held: z.int(), failed: z.int(), approval: z.int() }),
  commands: z.array(startedCommand).describe("that this dashboard has started, newest first; at most 20"),
  problem: text("why there is nothing to show; null if there is something").nullable(),
  isNew: flag("nothing has been run yet, and nothing is wrong"),
});
/** `GET /api/standing`, and each event of `GET /api/events`: what the page shows all the time. */
export type Standing = z.output<typeof standing>;

const older = z.int().nullable().describe("what to ask for as `before`, for the next page; null on the last");
const runPage = z.strictObject({ runs: z.array(run), older });
/** `GET /api/runs?before=N`: the newest first. */
export type RunPage = z.output<typeof runPage>;

const runDetail = run.extend({
  canResume: flag("`resume` has something to do"),
  trouble: z.array(
    z.strictObject({
      state: itemState,
      kind: z.enum(failureKinds).nullable(),
      note: text("why, for people").nullable(),
      items: count("how many"),
      rowIds: z.array(rowId).describe("of the first of them"),
    }),
  ),
});
/** `GET /api/runs/N` */
export type RunDetail = z.output<typeof runDetail>;

const shownFile = {
  src: text("the address of the file in the page"),
  thumbnail: text("the address of a small picture of it; null if it has none").nullable(),
};
const name = text("what commands find exactly this item by");
const shownItem = item.extend({ ...shownFile, src: shownFile.src.nullable() });
/** An item, with its first file. */
export type ShownItem = z.output<typeof shownItem>;
const itemPage = z.strictObject({ items: z.array(shownItem), total: count("how many match") });
/** `GET /api/runs/N/items?state=&text=&from=0&limit=100`: in the order of the sheet. */
export type ItemPage = z.output<typeof itemPage>;

const listedFile = file.omit({ key: true, folder: true }).extend({ ...shownFile, name });
export type ShownFile = z.output<typeof listedFile>;
const filePage = z.strictObject({ files: z.array(listedFile), older });
/** `GET /api/files?text=&before=&run=&limit=`: archived files of all runs, or of one, the newest first. */
export type FilePage = z.output<typeof filePage>;

const heldEvidence = z
  .strictObject({
    sentAt: utcMs("when its newest paid request was sent"),
    status: z.int().nullable().describe("the HTTP status of its answer; null if none came"),
    bodySha256: text("the SHA-256 of the request's body"),
    taskId: text("the task's id at the service").nullable(),
    externalTaskId: text("the task's id at the provider behind the service").nullable(),
  })
  .nullable()
  .describe("what is known of the request of a held item; null for any other");
export type HeldEvidence = z.output<typeof heldEvidence>;

const relative = z.strictObject({ id: z.int(), rowId, state: itemState, field: z.string() });
const itemStory = z.strictObject({
  item: shownItem.extend({
    edition: z.string(),
    variant: z.int(),
    tries: count("how often its task was asked for in vain, or a file of it was fetched in vain"),
    nextAt: utcMs("when its task is polled again"),
    params: text("JSON"),
    inputs: text("JSON"),
    cells: text("JSON"),
    name: text("the wanted name of its file"),
  }),
  attempts: z.array(
    z.strictObject({
      number: z.int().positive(),
      run: runNumber,
      price: credits("what it was expected to cost"),
      intendedAt: utcMs("when it was put on record"),
      sentAt: utcMs("when it was sent"),
      answeredAt: utcMs("when its answer came").nullable(),
      bodySha256: z.string(),
      outcome: z.string().nullable(),
      verdict: z.string().nullable(),
      status: z.int().nullable(),
      message: z.string().nullable(),
      taskId: z.string().nullable(),
      externalTaskId: z.string().nullable(),
      charged: credits("what was charged for it; null if unknown").nullable(),
      createdAt: z.string().nullable(),
      completedAt: z.string().nullable(),
    }),
  ),
  events: z.array(
    z.strictObject({
      at: utcMs("when it happened"),
      from: itemState,
      event: z.enum(itemEvents),
      to: itemState,
      attempt: z.int().nullable(),
      run: runNumber.nullable(),
    }),
  ),
  files: z.array(listedFile),
  parents: z.array(relative).describe("the items whose outputs it uses"),
  children: z.array(relative).describe("the items that use its outputs"),
  evidence: heldEvidence,
  name,
});
/** `GET /api/items/ID`: the whole story, from row to file. */
export type ItemStory = z.output<typeof itemStory>;

const waitingPage = z.strictObject({
  items: z.array(shownItem.extend({ evidence: heldEvidence, name })),
  total: count("how many there are"),
});
/** `GET /api/waiting?what=held|failed|approval`: what a person has to decide, at most 200. */
export type WaitingPage = z.output<typeof waitingPage>;

const points = z
  .array(z.strictObject({ at: utcMs("when the interval begins"), amount: z.number() }))
  .describe("how much came in each interval; those without any are absent");
const stepMs = milliseconds("how long an interval is");
const progressOverTime = z.strictObject({
  stepMs,
  startedAt: utcMs("when the run began"),
  archived: points,
  credits: points,
  requests: points.describe("API requests of the whole account"),
  forecast: z.strictObject({ endsAt: utcMs("when it expected the end"), items: z.int() }).nullable(),
});
/** `GET /api/runs/N/progress`: for charts. */
export type ProgressOverTime = z.output<typeof progressOverTime>;

const accountOverTime = z.strictObject({ stepMs, spent: points, requests: points });
/** `GET /api/account`: credits of the account over the last days, and its requests over the last one. */
export type AccountOverTime = z.output<typeof accountOverTime>;

const workers = fleet
  .omit({ lockOwner: true })
  .extend({ workers: z.array(fleet.shape.workers.element.extend({ startedAt: utcMs("when it began") })) })
  .nullable();
/** `GET /api/fleet`: the workers of a workspace in a database; null if the package of the queue is not installed. */
export type FleetStanding = z.output<typeof workers>;

const scheduleEntry = schedule.pick({ name: true, manifest: true, cron: true, zone: true }).extend({
  flags: z.array(z.string()),
  next: utcMs("when its next run is started").nullable(),
  pausedAt: utcMs("since when none is").nullable(),
  runs: z.array(
    z.strictObject({
      dueAt: utcMs("when it was due"),
      state: schedule.shape.scheduledRuns.element.shape.state,
      exit: z.int().nullable(),
      note: z.string().nullable(),
      run: runNumber.nullable(),
    }),
  ),
});
/** `GET /api/schedules` answers a list of them. */
export type ScheduleEntry = z.output<typeof scheduleEntry>;

const sheetEntry = z.strictObject({
  file: text("relative to the workspace"),
  usedAt: utcMs("when it was used last"),
});
/** `GET /api/sheets`: sheets that can be started: those dropped before and those of earlier runs, the newest first. */
export type SheetEntry = z.output<typeof sheetEntry>;

const droppedSheet = z.strictObject({
  file: text("relative to the workspace"),
  version: text("differs from the one before if the file has changed"),
  editable: flag("cells can be changed here; a job file is changed in an editor"),
  columns: z.array(z.string()),
  rows: count("its rows"),
  sheets: z.array(z.string()).describe("the sheets of a workbook; none of another file"),
  trouble: text("why the file cannot be read as a table; null if it can").nullable(),
});
/**
 * `POST /api/sheets?name=autumn.csv` with the file as body, and `replace=yes` if it may take the place of another one;
 * `GET /api/sheet?file=&sheet=`.
 */
export type DroppedSheet = z.output<typeof droppedSheet>;

const sheetRows = z.strictObject({
  rows: z.array(z.strictObject({ number: z.int(), cells: z.array(z.string()) })),
});
/** `GET /api/sheet/rows?file=&sheet=&from=&limit=`: `number` is the row as a spreadsheet counts. */
export type SheetRows = z.output<typeof sheetRows>;

const cellChange = z.strictObject({
  row: z.int().positive(),
  column: z.string().min(1).max(1_000),
  value: anyText,
});
/**
 * `POST /api/sheet/cells?file=&sheet=&version=` with a list of them: changes cells of a sheet that is still of this version; a
 * column that is missing is added. Answers with DroppedSheet.
 */
export type CellChange = z.output<typeof cellChange>;

const startChoices = z.strictObject({
  file: word,
  job: word.exactOptional().describe("the job that it belongs to; absent if bulkgen is to find it"),
  sheet: anyText.exactOptional().describe("the sheet of a workbook; the first if it is absent"),
  model: anyText.exactOptional(),
  prompt: anyText.exactOptional(),
  params: z.record(z.string().max(200), anyText).exactOptional(),
  maxCredits: z.number().nonnegative().exactOptional(),
  edition: anyText.exactOptional(),
  fresh: z.boolean().exactOptional().describe("a new numbered edition: makes everything again"),
  skipInvalid: z.boolean().exactOptional(),
  skipHeadings: z.boolean().exactOptional(),
  canary: z.boolean().exactOptional(),
  repair: z.boolean().exactOptional(),
});
/** What a person sets before a sheet is started; absent values are not given. */
export type StartChoices = z.output<typeof startChoices>;

const found = plan.shape;
const sheetProblem = z.strictObject({
  row: z.int().nullable().describe("as a spreadsheet counts; null if the whole file is meant"),
  column: z.string().nullable(),
  id: z.string().nullable(),
  line: z.int().nullable(),
  message: z.string(),
  expected: z.string(),
  got: z.string(),
  fixes: z.array(z.string()).describe("values that would be right, the likeliest first"),
  aside: z.enum(["heading", "total"]).nullable().describe("what the row looks like, if not like one to make"),
});
export type SheetProblem = z.output<typeof sheetProblem>;

const jobWay = z.strictObject({
  job,
  due: count("items that would be made"),
  existing: stateCounts.describe("the others, which exist already, by state"),
  credits: found.money,
  forecast: forecast.nullable().describe("null if nothing is to do"),
  line: text("`bulkgen run …` as it would be typed"),
  ready: flag("it can be started, unless there is nothing to make"),
});
/** What starting the sheet for one job would make, and cost. */
export type JobWay = z.output<typeof jobWay>;

const jobQuestion = z.strictObject({
  found: z.string(),
  continues: jobWay.nullable().describe("null if no job of this workspace can be continued"),
  again: jobWay.nullable().describe("null if something else keeps it from being started"),
});
/** A person decides whether a sheet continues an older job, or is paid for as a whole. */
export type JobQuestion = z.output<typeof jobQuestion>;

const sheetCheck = jobWay.extend({
  problems: z.array(sheetProblem),
  problemCount: count("there may be more than are listed"),
  blockers: z.array(z.string()).describe("why nothing can be started"),
  warnings: z.array(z.string()),
  notes: found.notes,
  requests: found.requests,
  models: found.models,
  question: jobQuestion.nullable().describe("null if none of its items may be paid for already"),
});
/** `POST /api/check` with StartChoices: `bulkgen plan` of it; nothing is spent. */
export type SheetCheck = z.output<typeof sheetCheck>;

const modelEntry = z.strictObject({
  id: z.string(),
  name: z.string(),
  category: z.string(),
  credits: z.number(),
});
/** `GET /api/models` answers a list of them: the models that can be chosen. */
export type ModelEntry = z.output<typeof modelEntry>;

const price = z.number().nonnegative();
const items = z.array(word).min(1).max(1_000);
const act = z.union([
  z.strictObject({ do: z.literal("start"), choices: startChoices, price }),
  z.strictObject({
    do: z.literal("schedule"),
    choices: startChoices,
    name: word,
    cron: z.string().max(200),
    zone: z.string().max(100),
  }),
  z.strictObject({ do: z.enum(["unschedule", "pause schedule", "resume schedule"]), name: word }),
  z.strictObject({ do: z.enum(["redo", "resubmit", "reject again", "refetch", "accept"]), items, price }),
  z.strictObject({ do: z.enum(["approve", "reject", "skip", "pick", "unpick"]), items }),
  z.strictObject({ do: z.literal("adopt"), items, task: word, price }),
  z.strictObject({ do: z.enum(["retry", "resume"]), run: z.int().positive(), price }),
  z.strictObject({ do: z.enum(["pause", "cancel"]), run: z.int().positive() }),
]);
/** `POST /api/offer` and `POST /api/act` with one of these. */
export type Act = z.output<typeof act>;

const offeredPrice = z.strictObject({
  items: z.array(z.strictObject({ rowId, model: z.string(), price: z.number() })),
  credits: credits("what these items would cost"),
  rest: z
    .strictObject({ items: z.int(), credits: z.number() })
    .describe("items that are submitted along with them, because their run continues"),
  note: z.string().nullable(),
  total: credits("what is agreed to, as the `price` of the act: all together"),
});
/** `POST /api/offer`: what an act with a price would cost. Its `price` is not read. */
export type OfferedPrice = z.output<typeof offeredPrice>;

const zipped = z.union([
  /** Of a run's items, without the rejected ones; with `final`, the set to hand over of its sheet. */
  z.object({ run: z.int().positive(), final: z.literal(true).optional() }),
  z.object({
    files: z
      .array(z.object({ item: z.int(), number: z.int() }))
      .min(1)
      .max(100_000),
  }),
]);
export type Zipped = z.output<typeof zipped>;
const zipReady = z.strictObject({
  src: z.string(),
  name: z.string(),
  /** What the set of a sheet lacks, or which of its files do not go together, for people. */
  note: z.string().nullable(),
});
/** `POST /api/zip` with Zipped: the address of the ZIP. */
export type ZipReady = z.output<typeof zipReady>;

const refusedAnswer = z.strictObject({
  error: z.strictObject({
    kind: z.enum(["refused", "token", "missing", "exists", "broken"]),
    message: z.string(),
  }),
});
/** Any answer that is not 2xx. */
export type RefusedAnswer = z.output<typeof refusedAnswer>;

/** What the page asks with, in the address. */
const query = z.object({
  before: z.coerce.number().int().optional(),
  from: z.coerce.number().int().nonnegative().default(0),
  limit: z.coerce.number().int().positive().max(500).default(100),
  run: z.coerce.number().int().optional(),
  text: z.string().max(1_000).default(""),
  state: z.enum(itemStates).optional(),
  file: z.string().max(4_000).default(""),
  sheet: z.string().max(1_000).optional(),
  name: z.string().max(1_000).default(""),
  replace: z.literal("yes").optional(),
  version: z.string().max(200).default(""),
  what: z.enum(["held", "failed", "approval"]).optional(),
});

/** What the server is asked. */
export const requests = {
  act,
  startChoices,
  cellChanges: z.array(cellChange).min(1).max(100_000),
  zipped,
  query,
};

/** What the server answers, by address. Tests hold every answer against it. */
export const answers = {
  "GET /api/standing": standing,
  "GET /api/runs": runPage,
  "GET /api/runs/N": runDetail,
  "GET /api/runs/N/items": itemPage,
  "GET /api/runs/N/progress": progressOverTime,
  "GET /api/account": accountOverTime,
  "GET /api/items/ID": itemStory,
  "GET /api/files": filePage,
  "GET /api/waiting": waitingPage,
  "GET /api/fleet": workers,
  "GET /api/schedules": z.array(scheduleEntry),
  "GET /api/sheets": z.array(sheetEntry),
  "POST /api/sheets": droppedSheet,
  "GET /api/sheet": droppedSheet,
  "POST /api/sheet/cells": droppedSheet,
  "GET /api/sheet/rows": sheetRows,
  "POST /api/check": sheetCheck,
  "GET /api/models": z.array(modelEntry),
  "POST /api/offer": offeredPrice,
  "POST /api/act": startedCommand,
  "POST /api/zip": zipReady,
};
