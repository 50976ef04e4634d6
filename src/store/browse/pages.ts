import type { ExitName } from "../../core/exit.js";
import type { FailureKind } from "../../core/failure.js";
import type { ItemEvent, ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Amount } from "../../core/ports/accounts.js";
import type { Approval, RunEnding, RunState } from "../../core/ports/store.js";

/**
 * A workspace page by page, for readers of a workspace that may have hundreds of runs and a hundred thousand items,
 * while other processes work in it. Each question is answered from an index or a maintained sum, except a search for
 * words.
 */
export interface Browser {
  /** The newest runs first; with `before`, only runs with a lower number. */
  runs(before: number | null, limit: number): Promise<BrowsedRun[]>;
  run(id: number): Promise<BrowsedRun | null>;
  /** Items in the order in which they were planned, and how many there are of them. */
  items(wanted: WantedItems): Promise<{ items: BrowsedItem[]; total: number }>;
  story(itemId: number): Promise<BrowsedStory | null>;
  /** Held items of all runs, failed items of unfinished work, or items that wait for approval: the newest runs first. */
  waiting(what: WaitingKind, limit: number): Promise<{ items: BrowsedItem[]; total: number }>;
  waitingCounts(): Promise<Record<WaitingKind, number>>;
  /** Archived files, the newest items first; with `before`, only items with a lower number. */
  files(wanted: WantedFiles): Promise<BrowsedFile[]>;
  file(itemId: number, number: number): Promise<BrowsedFile | null>;
  /** Items archived and credits spent in a run, per interval. */
  progress(runId: number, stepMs: number): Promise<{ archived: Amount[]; credits: Amount[] }>;
}

export interface WantedFiles {
  text: string;
  before: number | null;
  limit: number;
  run: number | null;
}

export type WaitingKind = "held" | "failed" | "approval";

export interface BrowsedRun {
  id: number;
  job: string;
  state: RunState;
  manifest: string;
  origin: string;
  accountId: string;
  edition: string;
  outFolder: string;
  options: string;
  startedAt: number;
  endedAt: number | null;
  exit: ExitName | null;
  ending: RunEnding | null;
  requests: number;
  counts: Partial<Record<ItemState, number>>;
  charged: Credits;
  pending: Credits;
  /** At most this was charged for requests whose items were submitted again or skipped. */
  lost: Credits;
  /** Items that wait for approval. */
  awaiting: number;
}

export interface WantedItems {
  runId: number;
  state: ItemState | null;
  /** Words of the row id, the prompt or the model; empty for all. */
  text: string;
  from: number;
  limit: number;
}

export interface BrowsedItem {
  id: number;
  runId: number | null;
  job: string;
  key: string;
  rowId: string;
  rowNumber: number;
  model: string;
  category: string;
  prompt: string | null;
  state: ItemState;
  failureKind: FailureKind | null;
  note: string | null;
  approval: Approval | null;
  price: Credits;
  /** How many files it has in the archive, and the type of the first. */
  files: number;
  mime: string | null;
  picked: number;
}

export interface BrowsedStory {
  item: BrowsedItem & {
    edition: string;
    variant: number;
    polls: number;
    nextAt: number;
    params: string;
    inputs: string;
    cells: string;
    name: string;
  };
  attempts: BrowsedAttempt[];
  events: {
    at: number;
    from: ItemState;
    event: ItemEvent;
    to: ItemState;
    attempt: number | null;
    run: number | null;
  }[];
  files: BrowsedFile[];
  /** The items whose outputs it uses, and the items that use its outputs. */
  parents: BrowsedRelative[];
  children: BrowsedRelative[];
}

export interface BrowsedRelative {
  id: number;
  rowId: string;
  state: ItemState;
  field: string;
}

export interface BrowsedAttempt {
  number: number;
  run: number;
  price: Credits;
  intendedAt: number;
  sentAt: number;
  answeredAt: number | null;
  bodySha256: string;
  outcome: string | null;
  verdict: string | null;
  status: number | null;
  message: string | null;
  taskId: string | null;
  externalTaskId: string | null;
  charged: Credits | null;
  createdAt: string | null;
  completedAt: string | null;
}

export interface BrowsedFile {
  itemId: number;
  number: number;
  /** The item's key, and the run that it is in. */
  key: string;
  itemRunId: number | null;
  /** The task that made it; null for a file that was made elsewhere. */
  taskId: string | null;
  /** The run whose folder has it. */
  runId: number;
  job: string;
  rowId: string;
  model: string;
  prompt: string | null;
  /** In the folder of the job, below `outFolder`. */
  file: string;
  outFolder: string;
  /** The bucket that has it instead of the disk. */
  bucket: string | null;
  bytes: number;
  sha256: string;
  mime: string;
  savedAt: number;
  approval: Approval | null;
  picked: number;
}
