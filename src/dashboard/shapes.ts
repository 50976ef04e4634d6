import type { Forecast } from "../core/pace/forecast.js";
import type { Amount } from "../core/ports/accounts.js";
import type { Reason } from "../core/reason.js";
import type { SeenWorker } from "../fleet/job.js";
import type { QueueLoad } from "../fleet/queue.js";
import type { PlannedRest } from "../job/orders/request.js";
import type { SheetChoices } from "../launch.js";
import type { BrowsedFile, BrowsedItem, BrowsedRun, BrowsedStory } from "../store/browse/pages.js";
import type { TroubleGroup } from "../store/workspace/news.js";
import type { Evidence } from "../workspace/evidence.js";

/**
 * What the server answers and the page reads, as JSON. Times are UTC ms, credits are plain numbers, unless a field says
 * otherwise.
 */

/** `GET /api/standing`, and each event of `GET /api/events`: what the page shows all the time. */
export interface Standing {
  /** The workspace's folder. */
  workspace: string;
  sandbox: boolean;
  version: string;
  /** The PostgreSQL database that its state is in, without a password; null for files of this machine. */
  database: string | null;
  now: number;
  /** Differs from the one before if anything in the workspace or its schedules has changed. */
  change: string;
  /** The run in progress, in whichever process; null if there is none. */
  running: LiveRun | null;
  waiting: { held: number; failed: number; approval: number };
  /** Commands that this dashboard has started, the newest first; at most 20. */
  commands: StartedCommand[];
  /**
   * Why there is nothing to show, for example because the workspace has no runs or belongs to a newer bulkgen; null if
   * there is something to show.
   */
  problem: string | null;
  /** Nothing has been run yet, and nothing is wrong. */
  isNew: boolean;
}

/** A run in progress, as its own process records it. */
export interface LiveRun {
  run: number;
  job: string;
  pid: number;
  host: string;
  since: number;
  counts: StateCounts;
  spent: number;
  cap: number | null;
  /** How long the forecast expected the whole run to take; null without one. */
  forecastMs: number | null;
  quota: {
    minute: QuotaWindow;
    day: QuotaWindow;
    /** The service has asked for a pause until then. */
    blockedUntil: number | null;
  };
  newestFile: string | null;
  /** Why it buys or sends nothing now, as one sentence with its time; null if it does. */
  reason: Reason | null;
}

export interface QuotaWindow {
  /** Null if nothing limits it. */
  limit: number | null;
  used: number;
}

export type StateCounts = Partial<Record<BrowsedItem["state"], number>>;

/** A bulkgen command that the page asked for. */
export interface StartedCommand {
  id: number;
  /** As it would be typed. */
  line: string;
  startedAt: number;
  /** Null while it runs. */
  exit: number | null;
  /** What it said last, for people; empty while there is nothing to say. */
  message: string;
}

/** `GET /api/runs?before=N`: the newest first; `older` is the number to ask for the next page before, null on the last one. */
export interface RunPage {
  runs: RunEntry[];
  older: number | null;
}

export interface RunEntry
  extends Omit<BrowsedRun, "options" | "manifest" | "outFolder" | "charged" | "pending" | "lost"> {
  charged: number;
  /** Credits of tasks that are not finished, and of requests without an answer. */
  pending: number;
  /** At most this was charged for requests whose items were submitted again or skipped. */
  lost: number;
  /** A process works on it now. */
  alive: boolean;
  cap: number | null;
  forecast: Forecast | null;
  /** The schedule that started it; null for one that a person started. */
  schedule: string | null;
}

/** `GET /api/runs/N` */
export interface RunDetail extends RunEntry {
  manifest: string;
  folder: string;
  /** `resume` has something to do. */
  canResume: boolean;
  trouble: readonly TroubleGroup[];
}

/** `GET /api/runs/N/items?state=&text=&from=0&limit=100`: in the order of the sheet. */
export interface ItemPage {
  items: ItemEntry[];
  total: number;
}

export interface ItemEntry extends Omit<BrowsedItem, "price"> {
  price: number;
  /** The address of its first file; null if it has none. */
  src: string | null;
  /** A small picture of it; null if it has none. */
  thumbnail: string | null;
}

/** `GET /api/runs/N/progress`: for charts. */
export interface ProgressOverTime {
  stepMs: number;
  startedAt: number;
  /** Items archived, and credits spent, per step; steps without any are absent. */
  archived: Amount[];
  credits: Amount[];
  /** API requests per step, of the whole account. */
  requests: Amount[];
  /** When the forecast expected the run to end, and of how many items; null without one. */
  forecast: { endsAt: number; items: number } | null;
}

/** `GET /api/account`: credits of the account over the last days, and its requests over the last one. */
export interface AccountOverTime {
  stepMs: number;
  spent: Amount[];
  requests: Amount[];
}

/** `GET /api/fleet`: the workers of a workspace in a database. Null if the package of the queue is not installed. */
export type FleetStanding = ({ workers: readonly SeenWorker[] } & QueueLoad) | null;

/** `GET /api/items/ID`: the whole story, from row to file. */
export interface ItemStory extends Omit<BrowsedStory, "item" | "files" | "attempts"> {
  item: ItemEntry & Omit<BrowsedStory["item"], "price">;
  attempts: (Omit<BrowsedStory["attempts"][number], "price" | "charged"> & {
    price: number;
    charged: number | null;
  })[];
  files: FileEntry[];
  /** For a held item: what is known of its request; otherwise null. */
  evidence: Evidence | null;
  /** The name by which commands find exactly this item. */
  name: string;
}

export interface FileEntry extends Omit<BrowsedFile, "outFolder" | "key" | "itemRunId" | "taskId"> {
  src: string;
  /** A small picture of it; null if it has none. */
  thumbnail: string | null;
  /** The name by which commands find exactly this item. */
  name: string;
}

/** `GET /api/files?text=&before=&run=&limit=`: archived files of all runs, or of one, the newest first. */
export interface FilePage {
  files: FileEntry[];
  older: number | null;
}

/** `GET /api/waiting?what=held|failed|approval`: what a person has to decide, at most 200. */
export interface WaitingPage {
  items: (ItemEntry & { evidence: Evidence | null; name: string })[];
  total: number;
}

/** `GET /api/schedules` */
export interface ScheduleEntry {
  name: string;
  manifest: string;
  cron: string;
  zone: string;
  flags: string[];
  next: number | null;
  pausedAt: number | null;
  runs: { dueAt: number; state: string; exit: number | null; note: string | null; run: number | null }[];
}

/** `GET /api/sheets`: sheets that can be started: those dropped before and those of earlier runs, the newest first. */
export interface SheetEntry {
  /** Relative to the workspace. */
  file: string;
  usedAt: number;
}

/**
 * `POST /api/sheets?name=autumn.csv` with the file as body, and `replace=yes` if it may take the place of another one;
 * `GET /api/sheet?file=&sheet=`.
 */
export interface DroppedSheet {
  file: string;
  /** Differs from the one before if the file has changed. */
  version: string;
  /** Cells can be changed here; a job file is changed in an editor. */
  editable: boolean;
  columns: string[];
  rows: number;
  /** The sheets of a workbook; none of another file. */
  sheets: readonly string[];
  /** Why the file cannot be read as a table; null if it can. */
  trouble: string | null;
}

/** `GET /api/sheet/rows?file=&sheet=&from=&limit=`: `number` is the row as a spreadsheet counts. */
export interface SheetRows {
  rows: { number: number; cells: string[] }[];
}

/**
 * `POST /api/sheet/cells?file=&sheet=&version=`: changes cells of a sheet that is still of this version; a column that is
 * missing is added. Answers with DroppedSheet.
 */
export interface CellChange {
  row: number;
  column: string;
  value: string;
}

/** What a person sets before a sheet is started; absent values are not given. */
export interface StartChoices extends SheetChoices {
  file: string;
  /** The job that it belongs to; absent if bulkgen is to find it. */
  job?: string;
  /** The sheet of a workbook; the first if it is absent. */
  sheet?: string;
  maxCredits?: number;
  /** A new numbered edition: makes everything again. */
  fresh?: boolean;
  canary?: boolean;
  repair?: boolean;
}

/** `POST /api/check` with StartChoices: `bulkgen plan` of it; nothing is spent. */
export interface SheetCheck {
  job: string;
  problems: SheetProblem[];
  /** There may be more than are listed. */
  problemCount: number;
  /** Reasons why nothing can be started, and remarks. */
  blockers: string[];
  warnings: string[];
  notes: string[];
  /** How many items would be made. */
  due: number;
  /** The others, which exist already, by state. */
  existing: StateCounts;
  /**
   * `needed` is for all that is due, `within` what the caps allow of it. `inDoubt` is what requests without an answer may
   * add: each is sent again if it proves not to have been charged.
   */
  credits: {
    needed: number;
    within: number;
    inDoubt: number;
    balance: number | null;
    after: number | null;
  };
  requests: { atLeast: number; plan: string | null; perMinute: number | null; perDay: number | null };
  /** How long it is expected to take, and what limits it; null if nothing is to do. */
  forecast: Forecast | null;
  models: { model: string; items: number; credits: number }[];
  /** `bulkgen run …` as it would be typed. */
  line: string;
  /** It can be started as it is. */
  ready: boolean;
  /** For which job it can be started, if its items may be paid for already; null if there is no such question. */
  question: JobQuestion | null;
}

/** A person decides whether a sheet continues an older job, or is paid for as a whole. */
export interface JobQuestion {
  found: string;
  /** Null if no job of this workspace can be continued. */
  continues: JobWay | null;
  /** Null if something else keeps it from being started. */
  again: JobWay | null;
}

/** What starting the sheet for this job would make, and cost. */
export interface JobWay
  extends Pick<SheetCheck, "job" | "due" | "existing" | "credits" | "forecast" | "line"> {
  /** It can be started, unless there is nothing to make. */
  ready: boolean;
}

export interface SheetProblem {
  /** As a spreadsheet counts; null if the whole file is meant. */
  row: number | null;
  column: string | null;
  id: string | null;
  line: number | null;
  message: string;
  expected: string;
  got: string;
  /** Values that would be right, the likeliest first. */
  fixes: string[];
  /** What the row looks like, if not like one to make; null for any other problem. */
  aside: "heading" | "total" | null;
}

/** `GET /api/models`: what models can be chosen, with their credits and the values of their parameters. */
export interface ModelEntry {
  id: string;
  name: string;
  category: string;
  credits: number;
}

/** `POST /api/offer` and `POST /api/act` with one of these. */
export type Act =
  | { do: "start"; choices: StartChoices; price: number }
  | { do: "schedule"; choices: StartChoices; name: string; cron: string; zone: string }
  | { do: "unschedule" | "pause schedule" | "resume schedule"; name: string }
  | { do: "redo" | "resubmit" | "reject again" | "refetch" | "accept"; items: string[]; price: number }
  | { do: "approve" | "reject" | "skip" | "pick" | "unpick"; items: string[] }
  | { do: "adopt"; items: string[]; task: string; price: number }
  | { do: "retry" | "resume"; run: number; price: number }
  | { do: "pause" | "cancel"; run: number };

/** `POST /api/offer`: what an act with a price would cost. Its `price` is not read. */
export interface OfferedPrice {
  items: { rowId: string; model: string; price: number }[];
  /** Of these items. */
  credits: number;
  /** Items that are submitted along with them, because their run continues. */
  rest: Omit<PlannedRest, "credits"> & { credits: number };
  note: string | null;
  /** What is agreed to, as the `price` of the act: all together. */
  total: number;
}

/** `POST /api/act`: the command as it stands after at most two seconds; later news of it are in Standing. */
export type Acted = StartedCommand;

/** `POST /api/zip` with `{run}` or `{files: [{item, number}]}`: answers with the address of the ZIP. */
export interface ZipReady {
  src: string;
  name: string;
}

/** Any answer that is not 2xx. */
export interface RefusedAnswer {
  error: { kind: "refused" | "token" | "missing" | "exists" | "broken"; message: string };
}
