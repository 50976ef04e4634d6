import type { Me, Model } from "../api/records.js";
import type { ExitName } from "../core/exit.js";
import type { Credits } from "../core/money.js";
import type { RunOptions } from "../core/next/options.js";
import type { Forecast } from "../core/pace/forecast.js";
import type { DurationEstimate } from "../core/pace/pace.js";
import type { Comparison, PlannedItem, PlannedState } from "../core/ports/draft.js";
import type { Item, ModelSize, OrderedVariant, Sheet } from "../core/ports/store.js";
import { type Problem, partOf } from "../core/problem.js";
import type { OwnLimits } from "../core/quota/quota.js";
import type { LocalInputs } from "../manifest/local-inputs.js";
import type { JobPublish, Manifest, Row } from "../manifest/shape/manifest.js";
import type { Draft } from "../store/draft/draft.js";
import { firstOf, type Listing } from "../text/listing.js";
import type { WorkflowStep } from "./workflow.js";

/** The complete input of a plan: the same input gives the same plan. */
export interface PlanInput {
  manifest: Manifest;
  /** An empty draft; the plan is made in it, and can be read while it is open. */
  draft: Draft;
  /** The service's live list, with parameters. */
  models: readonly Model[];
  /** Keys of models that the service lists without a price that can be used. */
  unpriced?: readonly string[];
  me: Me;
  /** Origin of the service's base address. */
  origin: string;
  /** The empty text for a job's first edition. */
  edition: string;
  /** The job's existing items, page by page, of any edition; other editions stay unchanged. They may be read twice. */
  existing: AsyncIterable<readonly Existing[]> | Iterable<readonly Existing[]>;
  /** The price groups of the job's items of this edition. */
  groups?: () => Promise<readonly string[]>;
  /** The defaults that runs of the job have left out of requests, by model; null if a rebuilt history does not say. */
  leftOut?: ReadonlyMap<string, ReadonlySet<string>> | null;
  /** What else may have been paid for: the price groups of it, and the defaults that requests for it left out. */
  others?: Required<Pick<PlanInput, "groups" | "leftOut">>;
  /** Variants of the job that a person has ordered and that are not submitted yet. */
  ordered?: readonly OrderedVariant[];
  /** The service is the sandbox, whose generations take seconds. */
  sandbox: boolean;
  /** The rows' local files, if the service accepts them or they are published; without it, local paths are problems. */
  localInputs?: Pick<LocalInputs, "found" | "read">;
  /** Why no file can be saved under an item's name; null if one can. */
  unwritable?: (name: string) => string | null;
  /** Accept values that a spreadsheet changed as the original options, and report each. */
  repair?: boolean;
  /** The highest charge seen for a price group (`priceGroup`), which replaces the base price. */
  charges?: ReadonlyMap<string, Credits>;
  /** Duration estimate of a price group; without it, that of its category. */
  pace?: (group: string) => DurationEstimate;
  /** Requests of the last 24 hours. */
  usedToday?: number;
  /** Requests that occupy the minute now. */
  usedNow?: number;
  /** The user's own limits, below the plan's. */
  ownLimits?: OwnLimits;
  /** Submits in flight at once, if the user has set it. */
  lanes?: number;
  caps?: Partial<SpendingCaps>;
  /** UTC ms. */
  now: number;
  /** What the workspace's archives hold, by model. */
  sizes?: readonly ModelSize[];
  /** Free bytes for the archive; null if the system does not report it. */
  roomBytes?: number | null;
  selection?: Selection;
  duplicates?: Duplicates;
  order?: SubmitOrder;
  /** Keys of archived items whose files are missing. */
  missing?: ReadonlySet<string>;
  /** What to do about missing files: nothing, download them again free of charge, or make and pay for them again. */
  onMissing?: OnMissing;
}

/** Which items are submitted first: by the column priority and then the sheet, as in the sheet, or the cheapest. */
export const submitOrders = ["priority", "sheet", "cheapest"] as const;
export type SubmitOrder = (typeof submitOrders)[number];

export const missingChoices = ["report", "fetch", "pay"] as const;
export type OnMissing = (typeof missingChoices)[number];

/** An item of the job as the store keeps it; any `Item` will do. */
export type Existing = Pick<
  Item,
  | "key"
  | "state"
  | "rowId"
  | "model"
  | "category"
  | "prompt"
  | "params"
  | "inputs"
  | "files"
  | "parents"
  | "edition"
  | "occurrence"
> & {
  cells?: Item["cells"];
  /** Whether it was ever submitted. A dropped item that was is not submitted again. */
  attempted?: boolean;
  /** The name that its files were last wanted under. */
  name?: string;
  /** No row asked for it when the job was last run. */
  vanished?: boolean;
};

/** A manifest checked against the live models and the account: what would be done, its cost, and what blocks it. */
export interface Plan extends Comparison {
  job: string;
  /** The manifest has only some rows of the job: its other items stay as they are. */
  isPart: boolean;
  file: string;
  origin: string;
  /** The user's id at the service. */
  user: string;
  edition: string;
  /** In the manifest's order. Rows with problems have none. */
  items: Listing<PlannedItem>;
  /** How many of them are to be submitted. */
  due: number;
  /** The manifest's and the plan's, sorted by row. */
  problems: Listing<Problem>;
  /** Variants of its rows that a person has ordered, and that are made with them. */
  ordered: { items: number; credits: Credits };
  /** What blocks a run before its first request. */
  blockers: Finding[];
  warnings: Finding[];
  notes: string[];
  /** Where the job file publishes local inputs. */
  publish: Pick<JobPublish, "to" | "expiresMs"> | null;
  /** The commands that the job file wants to be run after its files. */
  after: { file: string | null; set: string | null; timeoutMs: number | null } | null;
  /** The selection, if not all rows were selected. */
  selection: SelectedRows | null;
  /** Keys of items whose rows are not selected: they stay as they are. */
  unselected: Listing<string>;
  /** Defaults that no request for a model has, because it does not take them, by model. */
  leftOut: Readonly<Record<string, readonly string[]>>;
  /** Params that an item would have under another catalogue, and with which something was made, by the item's key. */
  otherParams: Readonly<Record<string, readonly Row["params"][]>>;
  /** Every row of the sheet with its items, for the export. */
  sheet: Sheet;
  /** Archived items in the selection whose files are gone. */
  missing: { rowId: string; key: string }[];
  /** How many items have each state. */
  states: Partial<Record<PlannedState, number>>;
  models: ModelCost[];
  /** The steps of the manifest; steps that use no output of others come first. */
  workflow: Listing<WorkflowStep>;
  money: Money;
  requests: Requests;
  fit: Fit;
  files: ExpectedFiles;
}

/** The run's expected disk use, as far as known. */
export interface ExpectedFiles {
  files: number;
  bytes: number;
  /** Models without history, even for their category: their outputs are not included in the bytes. */
  unknown: string[];
}

export interface SelectedRows {
  /** As flags. */
  text: string;
  rows: number;
  of: number;
}

/** The cost of one model's due items. */
export interface ModelCost {
  model: string;
  category: string;
  /** All items of the model, and those of them that are due. */
  items: number;
  due: number;
  price: Credits;
  credits: Credits;
  /** By the service's list, with its params; the highest if they differ. */
  base: Credits;
  /** The range of the highest charges seen for its items' params; null if there was none. */
  charged: { least: Credits; most: Credits } | null;
}

export interface Money {
  /** The cost of the due items and of the ordered variants. */
  needed: Credits;
  /** The part of it that the caps allow. */
  within: Credits;
  /** What requests without an answer may add: each is sent again if it proves not to have been charged. */
  inDoubt: Credits;
  /** Null if the service does not report it. */
  balance: Credits | null;
  /** The balance after that; negative when it does not suffice. */
  after: Credits | null;
  maxCredits: Credits | null;
  spent: Credits;
}

export interface Requests {
  /** What the run will need: requests, time, the limit that binds. */
  forecast: Forecast;
  /** When it will end (UTC ms); null if there is nothing to do. */
  finishAt: number | null;
  /** One submit and one poll for each covered item, one poll for each task at the service. */
  atLeast: number;
  /** The plan's name as the service gave it; null without a subscription. */
  plan: string | null;
  perMinute: number | null;
  perDay: number | null;
  /** The most submits in flight at once: as the user has set it, or by plan. */
  lanes: number;
}

/** What the credits cover: the longest run of due items, in the order of submission. */
export interface Fit {
  items: number;
  credits: Credits;
  /** The last covered row; null if not even the first item is covered. */
  rowNumber: number | null;
  rowId: string | null;
}

/** Which job a run can be given with --job, when its items may be paid for already. */
export interface JobChoice {
  /** What was found, without the ways on: `39 of 41 items were made before for job autumn (autumn.csv)`. */
  found: string;
  /** The job that has them; null if they are not of another job of this workspace. */
  continues: string | null;
  /** The job that makes and pays for all of them again. */
  again: string;
}

/** Something to know before a run: one line for people, and its facts. */
export type Finding = { message: string } & (
  | { kind: "no_subscription" }
  | { kind: "past_due" }
  | { kind: "insufficient_credits"; needed: Credits; balance: Credits; coverage: Fit }
  | { kind: "unreported_balance" }
  | { kind: "canceled"; until: string }
  | { kind: "unknown_subscription"; status: string }
  | { kind: "over_cap"; cap: string; needed: Credits; room: Credits; undone: number; coverage: Fit }
  | { kind: "over_model_cap"; model: string; needed: Credits; room: Credits; undone: number }
  | { kind: "ends"; until: string }
  | { kind: "period_ends"; until: string; finishAt: number }
  | { kind: "disk_space"; bytes: number; roomBytes: number }
  | { kind: "day_limit"; atLeast: number; perDay: number }
  | { kind: "identical_rows"; rows: number[]; copies: number; credits: Credits }
  | { kind: "unused_param_column"; column: string; models: string[] }
  | { kind: "missing_files"; items: string[]; credits: Credits }
  | { kind: "early_settling"; seconds: number; atLeast: number }
  | { kind: "deadline"; until: string; finishAt: number }
  | { kind: "made_before"; choice?: JobChoice }
  | { kind: "partly_made_before"; choice?: JobChoice }
  | { kind: "archived_before" }
  | { kind: "paid_before" }
  | { kind: "others_run"; choice?: JobChoice }
  | { kind: "foreign_use" }
);

/**
 * The blockers that keep a run from starting. A balance that does not cover all items does so with `--on-insufficient
 * refuse`; with `fit`, only if it covers no item and there is nothing else to do.
 */
export function refusalsOf(
  { blockers, items }: Pick<Plan, "blockers" | "items">,
  onInsufficient: RunOptions["onInsufficient"],
): Finding[] {
  return blockers.filter((blocker) => {
    if (blocker.kind !== "insufficient_credits" || onInsufficient === "refuse") return true;
    return onInsufficient === "fit" && blocker.coverage.items === 0 && onlyBuys(items);
  });
}

/** Whether no item is at the service or waits for its download. */
function onlyBuys(items: Iterable<PlannedItem>): boolean {
  for (const { due, state } of items) if (!due && state !== "archived" && state !== "failed") return false;
  return true;
}

/** The exit of a run that a blocker refuses. All other blockers are about items that would be paid for again. */
export function exitOfRefusal({ kind }: Finding): ExitName {
  if (kind === "no_subscription" || kind === "past_due") return "key";
  return kind === "insufficient_credits" ? "credits" : "usage";
}

/** Whether a run may continue without the wrong rows: false when something is wrong with the file as a whole. */
export function onlyRowsAreWrong(problems: Iterable<Problem>): boolean {
  // Problems of the whole file come first.
  return firstOf(problems, 1).every((problem) => problem.place.row !== null);
}

/** How many rows have problems, and how many combinations of rows. */
export function wrongParts(problems: Iterable<Problem>): { rows: number; combinations: number } {
  const [rows, parts] = [new Set<string>(), new Set<string>()];
  for (const { place } of problems) {
    if (place.row === null) continue;
    rows.add(`${place.row} ${place.file}`);
    parts.add(`${partOf(place)} ${place.file}`);
  }
  return { rows: rows.size, combinations: parts.size };
}

/**
 * What to do about identical rows. One message would not do for all: `keep` is what a sheet says that asks for several tries at one
 * prompt, and its message says what `merge` would save; `merge` is for sheets that were put together from others, whose rows then
 * share one file that is paid for once; `error` is for scheduled jobs, where nobody reads a message before the credits are spent.
 */
export const duplicatesChoices = ["keep", "merge", "error"] as const;
export type Duplicates = (typeof duplicatesChoices)[number];

/** A run's caps, and what already counts against them. */
export interface SpendingCaps {
  /** Of the run. */
  total: SpentAgainstCaps | null;
  /** Of single models; the other models continue. */
  models: ReadonlyMap<string, SpentAgainstCaps>;
  /** The balance to keep. */
  keep: Credits | null;
  /** Of the day, over all runs of the account. */
  daily: SpentAgainstCaps | null;
}

/**
 * Which rows a command is about. Identical rows, names and prices are counted over the whole sheet first, so a row is
 * the same item whether it is selected alone or with all others. Rows that are not selected are left unchanged, unlike
 * rows that are gone.
 */
export interface Selection {
  /** Values of one key are alternatives; every key must match. */
  filters: readonly Filter[];
  /** Rows whose item failed, including items from before the row was corrected. */
  onlyFailed: boolean;
  /** Row numbers as the spreadsheet shows them, both ends included. */
  range: { from: number; to: number } | null;
  /** How many rows are drawn by lot; the same seed draws the same rows. */
  sample: number | null;
  seed: string;
  first: number | null;
}

/** No selection: every row. */
export const allRows: Selection = {
  filters: [],
  onlyFailed: false,
  range: null,
  sample: null,
  seed: "",
  first: null,
};

export interface Filter {
  key: string;
  /** With `*` for any text and `?` for one character; capitals make no difference. */
  pattern: string;
}

export interface SpentAgainstCaps {
  most: Credits;
  spent: Credits;
}
