import type { MediaField } from "../../api/inputs.js";
import type { ExitName } from "../exit.js";
import type { FailureKind } from "../failure.js";
import type { ItemState } from "../item.js";
import type { Credits } from "../money.js";
import type { RunOptions } from "../next/options.js";
import type { StopKind } from "../stop.js";
import type { Attempt } from "./attempt.js";

/** What becomes of an item whose request was not charged. */
export interface AfterVerdict {
  /** When it may be submitted again (UTC ms). */
  nextAt?: number;
  /** It has been tried often enough, and has failed. */
  isGivenUp?: boolean;
}

export interface Job {
  id: number;
  name: string;
}

export const runStates = ["running", "paused", "interrupted", "finished", "cancelled"] as const;
export type RunState = (typeof runStates)[number];

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
  /** What is left of the commands after its files and after the set; absent if nothing is. */
  after?: AfterLeft;
}

/** Commands of `--after-file` and `--after-set` that have not done their work. The items stay archived all the same. */
export interface AfterLeft {
  /** Files whose command failed. */
  failed: number;
  /** Why, of the first ones. */
  reasons: { rowId: string; reason: string }[];
  /** Files whose command was not run, or was ended by an interrupt. */
  left: number;
  /** Why the command after the set failed; null if it did not. */
  set: string | null;
  /** Files of the set that are missing on the disk, so that the command after it was not run; absent if none is. */
  missing?: number;
}

export interface RunChange {
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

export const approvals = ["waiting", "approved", "rejected"] as const;
export type Approval = (typeof approvals)[number];

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

export interface TaskFacts extends Addresses {
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
  files: readonly (Omit<SavedFile, "check"> & Pick<ArchivedOutput, "number" | "outFolder">)[];
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
