import type { Credits } from "../money.js";
import type { Item } from "./store.js";

/** Files of an archive, as the workspace knows them. */

export interface ArchivedFile extends SavedFile {
  itemId: number;
  key: string;
  number: number;
  /** Empty for a file that was made elsewhere. */
  taskId: string;
}

/** A file of the archive, and what it came from. */
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
  /** Of the run that paid for it. */
  outFolder: string;
  paidIn: number;
}

/** What the archived items of a model have left on the disk. */
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
}
