import type { ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Forecast } from "../../core/pace/forecast.js";
import type { WaitingItem } from "../workspace/evidence.js";

/** What became of a run, as plain data. */
export interface RunSummary {
  job: string;
  /** The run's number in its workspace. */
  run: number;
  counts: Readonly<Partial<Record<ItemState, number>>>;
  /** Items that were archived before this execution began. */
  before: number;
  failures: readonly { rowId: string; kind: string; reason: string }[];
  held: readonly WaitingItem[];
  /** Paid requests of which is not known yet whether they were charged. */
  unknown: readonly WaitingItem[];
  overdue: readonly WaitingItem[];
  /** When the first overdue task is looked at again (UTC ms); null where there is none. */
  nextLookAt: number | null;
  /** When an unfinished run can go on by itself (UTC ms); null where nobody can tell. */
  resumeAt: number | null;
  /** Why the run ended before its items did: whole sentences. */
  stops: readonly string[];
  /** Charged for good. */
  spent: Credits;
  /** At the service, unknown or held: charged, or perhaps to be charged. */
  pending: Credits;
  /** Requests that were charged or perhaps charged, and whose items were submitted again or given up. */
  lost: readonly WaitingItem[];
  /** What they cost at most. */
  lostCredits: Credits;
  /** The balance; null where it could not be asked for. */
  left: Credits | null;
  /** How far the key's counter of used credits moved, and what the items account for; null where it was not read. */
  books: { counted: Credits; known: Credits } | null;
  /** API requests of this run, over all its resumes. */
  requests: number;
  elapsedMs: number;
  /** What was expected when the run began; null where nothing was to be made, or it was resumed. */
  forecast: Forecast | null;
  /** Files that this run saved, and their bytes. */
  files: number;
  bytes: number;
  /** Where they are. */
  folder: string;
  exitCode: number;
  /** What to do now, as a command or a sentence; null when nothing is left to do. */
  nextStep: string | null;
}
