import type { MediaField } from "../../api/inputs.js";
import type { Verdict } from "../charges/readings.js";
import type { ExitName } from "../exit.js";
import type { FailureKind } from "../failure.js";
import type { ItemEvent, ItemState } from "../item.js";
import type { Credits } from "../money.js";
import type { Due, Head, Parked, RunGroup, WaitingGroup } from "../next/next.js";
import type { RunOptions } from "../next/options.js";
import type { StopKind } from "../stop.js";
import type { Attempt, AttemptOutcome, Intent, LoggedAttempt } from "./attempt.js";
import type { Orders } from "./orders.js";

/** The port to one workspace: jobs, runs, items, attempts, outputs, orders. Every method is one transaction. */
/** What becomes of an item whose request was not charged. */
export interface AfterVerdict {
  /** When it may be submitted again (UTC ms). */
  nextAt?: number;
  /** It has been tried often enough, and has failed. */
  isGivenUp?: boolean;
}

export interface Store extends Orders {
  /** The job of that name, made when it is new. */
  job(name: string): Promise<Job>;
  /** All items that the job of that name ever had. */
  itemsOf(jobName: string): Promise<Item[]>;
  /**
   * All items that the job ever had, without the variants of redos, from the oldest to the newest and page by page: a job
   * may have more items than fit into memory.
   */
  history(jobName: string): AsyncIterable<readonly Item[]>;
  /** Variants that a person has ordered and agreed to pay for, and that are not submitted yet. */
  ordered(jobName: string, edition: string): Promise<OrderedVariant[]>;
  /** The price groups of the job's items of an edition, or of those of all jobs. */
  priceGroups(jobName: string | null, edition: string): Promise<string[]>;
  /** Items of the job that have files in the archive or no row any more; or only the items without a row. */
  toArrange(jobName: string, only?: "vanished"): Promise<Item[]>;
  /**
   * Starts a run of a job, or continues the account's unfinished run of its edition with new options. A new run gets the
   * next number, or `number`, which no run has yet.
   */
  startRun(jobId: number, start: RunStart, number?: number): Promise<Run>;
  /** `startRun` and `enroll` in one transaction: whatever happens, there is a run with all its items, or no run. */
  beginRun(
    jobId: number,
    start: RunStart,
    items: Iterable<NewItem>,
    unselected?: Iterable<string>,
    onlyRows?: Iterable<string>,
  ): Promise<Run>;
  /** A run by number, or the newest unfinished run, or the newest run. Null if there is none. */
  run(which: number | "unfinished" | "newest"): Promise<Run | null>;
  runs(): Promise<Run[]>;
  setRun(runId: number, change: RunChange): Promise<void>;
  /**
   * Items that the run would still submit and that another job has paid for, or may have, since this run started: how
   * many, what they would cost, and one of them. Null if there are none.
   */
  madeElsewhere(
    runId: number,
  ): Promise<{ items: number; credits: Credits; rowId: string; jobName: string } | null>;
  /**
   * Nothing more is submitted for this run: items that were never submitted are dropped, and items whose requests were
   * refused leave the run. Items in `busy` are about to be submitted and stay. Returns how many items were dropped or
   * left.
   */
  cancelRun(runId: number, busy: ReadonlySet<number>): Promise<number>;
  /**
   * Puts the planned items into the run: new items are added, known items get their new order and names. Items of the
   * job that are not among them have vanished: they are dropped if they were never submitted; the others are completed
   * in this run. Items whose keys are in `unselected` are in the manifest but not selected; they stay as they are, and
   * so do items that another account's run has open. `onlyRows` are the row ids of a manifest that has only some of the
   * job's rows: items of other rows stay as they are too.
   */
  enroll(
    runId: number,
    items: Iterable<NewItem>,
    unselected?: Iterable<string>,
    onlyRows?: Iterable<string>,
  ): Promise<void>;
  /** Stores the sheet as it was read for this run. A sheet is stored once, however many runs use it. */
  keepSheet(runId: number, sheet: Sheet): Promise<void>;
  /** The sheet of a run; null if none is stored. */
  sheetOf(runId: number): Promise<KeptSheet | null>;
  /** The job's items with these keys, if they exist, with their outputs; in no order. */
  made(jobId: number, keys: readonly string[]): Promise<MadeItem[]>;
  /** The highest number of a variant in the job; 1 if nothing was redone. */
  variantsMax(jobId: number): Promise<number>;
  /** Adds items to a run, and touches no other. */
  add(runId: number, items: readonly NewItem[]): Promise<void>;
  /**
   * Items of the workspace with this row id, short key or task id, or, if there are none, with this file. The newest
   * run's items come first.
   */
  find(name: string): Promise<Item[]>;
  /** Whether the job has an item of this key. */
  has(jobId: number, key: string): Promise<boolean>;
  /**
   * What a run has to do soon: counts of its items, all open tasks, and at most `limit` items of each other kind. Of
   * the planned items that are not parked, it returns this many for each head; with `heads` null, the first in the
   * manifest's order. Items in `beginning` are about to be submitted, and count as submitted.
   */
  due(
    runId: number,
    limit: number,
    parked: Parked,
    heads: readonly Head[] | null,
    beginning?: readonly number[],
  ): Promise<Due>;
  /** The price groups of a run's items, one entry for each planned price. */
  groups(runId: number): Promise<RunGroup[]>;
  /** The planned items of a run that are not parked, counted. */
  waiting(runId: number, parked: Parked): Promise<WaitingGroup[]>;
  counts(runId: number): Promise<Record<ItemState, number>>;
  /** All items of the workspace, of runs or of none. */
  countAll(): Promise<Record<ItemState, number>>;
  item(itemId: number): Promise<Item>;
  /** The items of a run, optionally only those in these states: a run may have more items than fit into memory. */
  items(runId: number, states?: readonly ItemState[]): Promise<Item[]>;
  /** The row ids of a run's items, in the manifest's order. */
  rowIds(runId: number): Promise<string[]>;
  /**
   * Credits of the run, or of one of its models: those charged for good, and those that are or may be charged. Items in
   * `beginning` are about to be submitted, and count from then on.
   */
  spending(runId: number, of?: { model?: string; beginning?: readonly number[] }): Promise<Spending>;

  /** Before a POST: makes the item `submitting` and records its attempt. */
  intend(itemId: number, intent: Intent): Promise<Attempt>;
  /**
   * After a POST: records the outcome of the attempt and the item's next state. Rejects with TaskTaken if the task
   * belongs to another item.
   */
  conclude(attemptId: number, event: ItemEvent, outcome: AttemptOutcome): Promise<void>;
  /** Any other event of an item. */
  apply(itemId: number, event: ItemEvent, change: ItemChange): Promise<void>;
  /** A poll or download attempt that changed nothing. */
  reschedule(
    itemId: number,
    nextAt: number,
    change?: { tries?: number; note?: string | null; seenAt?: number },
  ): Promise<void>;
  /** Records the verdict on an unanswered paid request: its item continues, or is held. */
  giveVerdict(itemId: number, verdict: Verdict, note: string, then?: AfterVerdict): Promise<void>;
  /**
   * How many of an item's paid requests in a row ended without an answer, the newest included. A task or a rejection ends
   * such a row.
   */
  lostInARow(itemId: number): Promise<number>;
  /** The parents of an item, one for each input that is another item's output. */
  parentsOf(itemId: number): Promise<ParentOutput[]>;
  /** The ready or archived parents of a run's blocked items, with the addresses of the outputs that the items use. */
  handingOn(runId: number): Promise<HandedOn[]>;
  /**
   * Releases the blocked items of a run whose parents are all ready or archived, and none of them in `stale`. Returns
   * how many it released. Items are also released as soon as the URLs of their last parent arrive.
   */
  release(runId: number, stale: readonly number[]): Promise<number>;
  /**
   * The blocked items of a run that are made once the run goes on, and their price. Not those that wait for an item that
   * failed, is held or dropped, or that a person has not approved, except for `again`: these are made again.
   */
  blockedRest(runId: number, again: readonly number[]): Promise<{ items: number; credits: Credits }>;
  /** A planned item goes back to wait for its parents. */
  wait(itemId: number): Promise<void>;
  /** A planned item waits until `publishAgain` is called: its local file cannot be published, for this reason. */
  unpublished(itemId: number, reason: string): Promise<void>;
  /** Whether blocked items of the run wait for something that a resume tries again: publishing or a canary. */
  mayUnblock(runId: number): Promise<boolean>;
  /** Lets the run's items whose inputs could not be published or handed on try again, and forgets the reasons. */
  publishAgain(runId: number): Promise<void>;
  /** Where a content was published to, if that is known. */
  publishedAt(target: string, sha256: string): Promise<{ url: string; until: number | null } | null>;
  keepPublished(target: string, sha256: string, at: { url: string; until: number | null }): Promise<void>;
  /** New signed URLs for the outputs of an item that is ready or archived. */
  renewed(itemId: number, fresh: Addresses): Promise<void>;
  /** Records for the blocked children of an item why they cannot have its outputs. */
  noteChildren(itemId: number, note: string): Promise<void>;
  /**
   * With a canary, the first item of each price group, in the order of chains, is made before the others, which are
   * blocked until it is archived. A group with an archived item (approved, if approval is required) needs no canary.
   * Items that waited for an earlier canary are released from it first.
   */
  canaries(runId: number, wanted: boolean): Promise<void>;
  /** Archived items of the run that wait for a person's approval, in the manifest's order. */
  awaitingApproval(runId: number): Promise<{ id: number; rowId: string; rowNumber: number }[]>;
  /**
   * A person approves archived items, or rejects them. The blocked children of a row use the outputs of the row's item
   * that was approved last, and are released. Returns the run of each released item.
   */
  approve(itemIds: readonly number[], approval: "approved" | "rejected"): Promise<readonly number[]>;
  /** How many items of the run are blocked, directly or through other items, by an item that a person rejected. */
  blockedByRejection(runId: number): Promise<number>;
  /** The blocked items of a run in the manifest's order, each with all its parents. */
  blocked(runId: number): Promise<BlockedItem[]>;
  /** The cost of lost attempts whose items were submitted again. */
  resubmitted(runId: number): Promise<Credits>;
  /** The balance in the newest answer to a paid request of the run since this time (UTC ms); null if there was none. */
  lastBalance(runId: number, since: number): Promise<Credits | null>;
  /** The newest accepted request to a service: its spend-log entry, and when it was sent (UTC ms); null if there is none. */
  newestPaid(origin: string): Promise<{ entry: number; sentAt: number } | null>;
  /** The attempt with this spend log entry; null if it never became an attempt. */
  attemptOfEntry(spendLogId: number): Promise<LoggedAttempt | null>;
  /** Whether the job's item with this key ever had the attempt of this number. */
  attempted(jobName: string, key: string, number: number): Promise<boolean>;
  /**
   * A person has found the task of a held item: the item is at the service again. If the item was submitted again, the
   * task may belong to an earlier attempt, which becomes the item's newest attempt.
   */
  adopt(itemId: number, task: { taskId: string; charged: Credits; attempt: number }): Promise<void>;
  /** The task is done: records its facts and output addresses; the item becomes `ready`. */
  complete(itemId: number, facts: TaskFacts): Promise<void>;
  /** The attempt that led to the item's task. */
  attempt(itemId: number): Promise<Attempt | null>;
  /**
   * Attempts that were or may have been charged, and whose task is unknown. For a run: those whose items continued, and
   * that the run sent, or that an earlier run sent and this run pays again.
   */
  orphans(of: { item: number } | { run: number }): Promise<Attempt[]>;
  outputs(itemId: number): Promise<Output[]>;
  /**
   * The outputs that the run still needs are at this origin now, because a sandbox has another port at each start. Only
   * for sandboxes.
   */
  readdress(runId: number, origin: string): Promise<void>;
  /** The signed addresses of a ready item have expired: its task is due for another poll. */
  expire(itemId: number, note: string): Promise<void>;
  /** New signed URLs for outputs that are not archived yet. */
  refreshOutputs(itemId: number, fresh: Addresses): Promise<void>;
  /** One output is in the archive; when all are, the item is `archived`. */
  saved(itemId: number, number: number, file: SavedFile): Promise<void>;
  /** The files of a job's archived items, or only the files of items without a row. */
  files(jobName: string, only?: "vanished"): Promise<ArchivedFile[]>;
  /**
   * A file that was made elsewhere is in the archive as an item's only output: the item joins the run, and nothing is
   * paid.
   */
  supply(runId: number, item: NewItem, file: SavedFile): Promise<void>;
  /** A file of the archive has another name. */
  moved(itemId: number, number: number, file: string): Promise<void>;
  /** One file of an archived item is gone: the item becomes ready to be downloaded again, which costs nothing. */
  lost(itemId: number, number: number): Promise<void>;
  /** The files of archived items were removed for good. The items stay archived, with this check of each output. */
  pruned(itemIds: readonly number[], change: { check: string; note: string }): Promise<void>;
  /** Every archived output, of one job or of all, from the oldest item to the newest and page by page. */
  archived(jobId?: number): AsyncIterable<readonly ArchivedOutput[]>;
  /** The files in the archive summed up by model. */
  archivedSizes(): Promise<ModelSize[]>;
  /** What was archived since a run started: the number of items, of their files, and of bytes. */
  filesOf(runId: number): Promise<{ made: number; files: number; bytes: number }>;
  /** Ids of the items that a person has picked. */
  picks(): Promise<Set<number>>;
  /** Marks items as picked or not, and changes nothing else. */
  pick(change: { picked: readonly number[]; unpicked: readonly number[] }): Promise<void>;
  /** Items whose POST was interrupted by a crash: submitting or unknown, without a process. */
  interrupted(): Promise<Item[]>;
  /** Makes several changes in one transaction: all of them, or none if `work` throws. */
  together<Result>(work: (changes: Changes) => TransactionPart<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** A part of a transaction: `yield*` runs it and gives its result. */
export type TransactionPart<Result> = Generator<unknown, Result, unknown>;

type AsPart<Method> = Method extends (...given: infer Given) => Promise<infer Result>
  ? (...given: Given) => TransactionPart<Result>
  : never;

/** The methods of the store that orders and repairs use, as parts of one transaction. */
export type Changes = {
  [Name in
    | "startRun"
    | "setRun"
    | "cancelRun"
    | "add"
    | "counts"
    | "apply"
    | "adopt"
    | "expire"
    | "lost"
    | "approve"
    | "isWaiting"
    | "finishOrder"]: AsPart<Store[Name]>;
};

export interface Job {
  id: number;
  name: string;
}

export type RunState = "running" | "paused" | "interrupted" | "finished" | "cancelled";

export interface RunStart {
  manifest: string;
  origin: string;
  accountId: string;
  edition: string;
  outFolder: string;
  options: RunOptions;
}

export interface Run extends RunStart {
  id: number;
  jobId: number;
  jobName: string;
  state: RunState;
  startedAt: number;
  endedAt: number | null;
  exit: ExitName | null;
  /** Null while the run is in progress, after a crash, and once a person has changed what is left to do. */
  ending: RunEnding | null;
  /** API requests made for this run so far. */
  requests: number;
  /** Items of it were submitted and are not collected yet. */
  owes: boolean;
  /** The job's files have the names that the run's rows give them. */
  arranged: boolean;
}

/** Why a run ended, and when it can continue. */
export interface RunEnding {
  stops: readonly StopKind[];
  /** Why it ended before its items did: one sentence each. */
  reasons: readonly string[];
  /** When it can continue (UTC ms); null if it need not wait. */
  resumeAt: number | null;
  /** Items that the credits did not cover. */
  leftOut: number;
}

interface RunChange {
  state?: RunState;
  arranged?: true;
  endedAt?: number | null;
  exit?: ExitName | null;
  /** Recorded together with `exit`; without it, there is none. */
  ending?: RunEnding;
  requests?: number;
  options?: RunOptions;
}

/** An input that is another item's output. */
export interface Parent {
  field: MediaField;
  /** The key of the item whose output it is. */
  key: string;
  /** The number of the output, from 1. */
  output: number;
}

/** A parent in its current state; everything else is null if the job has no item with that key. */
export interface ParentOutput extends Omit<Parent, "field"> {
  /** `canary` if no output of it is used: the item only waits until this one is archived. */
  field: MediaField | "canary";
  id: number | null;
  rowId: string | null;
  state: ItemState | null;
  approval: Approval | null;
  note: string | null;
  /** How many outputs it has. */
  outputs: number;
  /** Null if there is no such output, empty for a file that was made elsewhere. */
  url: string | null;
  /** When the URL arrived (UTC ms). */
  addressedAt: number | null;
}

export interface HandedOn {
  id: number;
  url: string;
  addressedAt: number | null;
}

export interface BlockedItem {
  rowId: string;
  rowNumber: number;
  note: string | null;
  parents: ParentOutput[];
}

/** An item as the plan makes it. */
export interface NewItem {
  key: string;
  edition: string;
  occurrence: number;
  /** 1, or the number of the variant that a redo made. */
  variant: number;
  /** Order of submission within a priority; also the order of the manifest. */
  position: number;
  priority: number;
  rowNumber: number;
  rowId: string;
  /** Wanted name of the file without its extension. */
  name: string;
  model: string;
  category: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  /** As written: an address, or a reference to one of the parents. */
  inputs: Readonly<Partial<Record<MediaField, string>>>;
  /** The items whose outputs it takes; none if absent. */
  parents?: readonly Parent[];
  /** The hashes of the local files among its inputs, as they were planned: `sha256:…`. */
  files?: Readonly<Partial<Record<MediaField, string>>>;
  /** A person has to approve its files before other items use them. */
  approve?: true;
  /** The row's cells as written, by column and in the manifest's order, for exports. */
  cells: readonly (readonly [column: string, text: string])[];
  /** The price that was planned for it. */
  price: Credits;
}

/** A variant that a redo has added. */
export interface OrderedVariant {
  rowId: string;
  price: Credits;
  /** The key of the item of its row; null if the job does not have it any more. */
  of: string | null;
}

export interface Item extends NewItem {
  id: number;
  jobId: number;
  runId: number | null;
  state: ItemState;
  /** It was submitted at least once. */
  attempted: boolean;
  nextAt: number;
  /** When its task was last found unfinished (UTC ms). */
  seenAt: number | null;
  /** Polls of its task so far; once the item is ready, failed tries to download its outputs. */
  tries: number;
  /** Tasks of this item that failed so far. */
  failures: number;
  failureKind: FailureKind | null;
  /** Why it failed, is held, or could not be downloaded yet. */
  note: string | null;
  /** A person's decision about its files; null if no approval is required. */
  approval: Approval | null;
  /** No row asks for it any more. */
  vanished: boolean;
  /** A person takes the outputs of its task as they are, even if they fail their check. */
  accepts?: true;
}

export type Approval = "waiting" | "approved" | "rejected";

export interface Spending {
  /** Charged for tasks that completed. */
  charged: Credits;
  /** In flight, at the service, unknown or held: charged, or possibly charged. */
  pending: Credits;
  /** The part of it for tasks that the service accepted, and the number of these tasks. */
  atService: Credits;
  tasks: number;
  /** How many requests may have been charged, or may not. */
  inDoubt: number;
}

export interface ItemChange {
  nextAt?: number;
  /** When its task was found unfinished (UTC ms). */
  seenAt?: number;
  note?: string;
  failureKind?: FailureKind;
  /** The price that a person agreed to pay for it. */
  price?: Credits;
  /** A person takes its outputs as they are. */
  accepts?: true;
  /** Contents (SHA-256) whose addresses may be the reason of the failure: they are published again. */
  publishAgain?: readonly string[];
  /** Facts of a task that failed. */
  charged?: Credits;
  completedAt?: string | null;
  /** When a task that failed is submitted again: it is retried in the same step (UTC ms). */
  retryAt?: number;
}

/** Signed addresses of outputs. */
export interface Addresses {
  urls: readonly string[];
  /** Which to fetch first: the earliest (UTC ms). */
  fetchBy: number;
}

interface TaskFacts extends Addresses {
  /** Null if the service does not state it: then the charge of its request stands, or else the item's price. */
  charged: Credits | null;
  createdAt: string;
  completedAt: string | null;
}

export interface Output {
  number: number;
  url: string;
  file: string | null;
  /** Hexadecimal; null before there is a file. */
  sha256: string | null;
  /** The bucket that has the file instead of the disk. */
  bucket?: string | null;
}

/** Files of an archive, as the workspace knows them. */

export interface ArchivedFile extends SavedFile {
  itemId: number;
  key: string;
  number: number;
  /** Empty for a file that was made elsewhere. */
  taskId: string;
  /** Of the run that saved it. */
  outFolder: string;
}

/** An item with all its attempts, and if it is archived with its files, both in the order of their numbers. */
export interface MadeItem {
  item: Item;
  /** `outFolder` is that of the run that saved the file. */
  files: readonly (Pick<SavedFile, "file" | "bytes" | "bucket"> & Pick<ArchivedOutput, "outFolder">)[];
  attempts: readonly Attempt[];
}

/** An archived file and its origin. */
export interface ArchivedOutput extends SavedFile {
  item: Item;
  /** Number within its task, from 1. */
  number: number;
  savedAt: number;
  taskId: string;
  externalTaskId: string | null;
  charged: Credits | null;
  /** ISO 8601, as the service wrote them. */
  createdAt: string | null;
  completedAt: string | null;
  jobName: string;
  /** Of the run that saved it. */
  outFolder: string;
  /** The run that paid for it. */
  paidIn: number;
}

/** The disk use of a model's archived items. */
export interface ModelSize {
  model: string;
  category: string;
  items: number;
  files: number;
  bytes: number;
}

export interface SavedFile {
  file: string;
  bytes: number;
  sha256: string;
  mime: string;
  check: string;
  /** The bucket that has it instead of the disk: `s3://bucket/prefix`. */
  bucket?: string | null;
}

/** A manifest's rows as people wrote them. */
export interface Sheet {
  /** In their order. */
  columns: readonly string[];
  rows: Iterable<SheetRow>;
}

/** A stored sheet. Its rows are read page by page, because they may not fit into memory. */
export interface KeptSheet extends Pick<Sheet, "columns"> {
  pages(): AsyncIterable<readonly SheetRow[]>;
}

export interface SheetRow {
  /** As the spreadsheet counts. */
  number: number;
  /** Cells that are not empty, by column. */
  cells: Readonly<Record<string, string>>;
  /** Keys of the items that the row stands for. */
  keys: readonly string[];
  /** Why it stands for none; null if it was right. */
  problem: string | null;
}

/** What an export adds to a sheet, in this order. */
export const filledColumns = [
  "item",
  "file",
  "picked",
  "state",
  "reason",
  "credits",
  "task_id",
  "external_task_id",
  "evidence",
] as const;
