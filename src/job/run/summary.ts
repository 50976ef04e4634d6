import type { ExitName } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import type { Credits } from "../../core/money.js";
import type { Forecast } from "../../core/pace/forecast.js";
import type { BlockedReason } from "../workspace/blocked.js";
import type { WaitingItem } from "../workspace/evidence.js";
import type { ItemFailure } from "../workspace/status.js";

/** The result of a run, as plain data. */
export interface RunSummary {
  job: string;
  /** The run's number in its workspace. */
  run: number;
  sandbox: boolean;
  counts: Readonly<Record<ItemState, number>>;
  /** Invalid rows that were left out; null if there are none. */
  skipped: { rows: number; file: string } | null;
  /** Items that were archived before this execution began. */
  before: number;
  failures: readonly ItemFailure[];
  held: readonly WaitingItem[];
  /** Paid requests that may have been charged. */
  unknown: readonly WaitingItem[];
  overdue: readonly WaitingItem[];
  /** Items that wait for outputs of others. */
  blocked: readonly BlockedReason[];
  /** Row ids of archived items that wait for a person's approval. */
  awaiting: readonly string[];
  /** When the first overdue task is polled again (UTC ms); null if there is none. */
  nextPollAt: number | null;
  /** When an unfinished run can continue (UTC ms); null if unknown. */
  resumeAt: number | null;
  /** Why the run ended before all items were done: whole sentences. */
  stops: readonly string[];
  /** Charged for good. */
  spent: Credits;
  /** At the service, unknown or held: charged, or possibly charged. */
  pending: Credits;
  /** Of these, for tasks that the service accepted. */
  atService: Credits;
  /** How many tasks those are. */
  tasks: number;
  /** How many requests may have been charged, or may not. */
  inDoubt: number;
  /** Requests that were or may have been charged, and whose items were submitted again or skipped. */
  lost: readonly WaitingItem[];
  /** Their maximum cost. */
  lostCredits: Credits;
  /** The balance; null if it could not be read. */
  left: Credits | null;
  /** The balance as the service last reported it during the run; null if it never did. */
  lastLeft: Credits | null;
  /** How far the key's counter of used credits moved, and what the items account for; null if it was not read. */
  creditCheck: { counted: Credits; known: Credits } | null;
  /** API requests of this run, over all its resumes. */
  requests: number;
  /** The time of this command, from the moment of consent to its price. */
  elapsedMs: number;
  /** From the beginning of the run to its end. */
  ranMs: number;
  /** The forecast from the start of the run; null if nothing was planned or the run was resumed. */
  forecast: Forecast | null;
  /** Items that this run archived, their files, and the bytes of those. */
  made: number;
  files: number;
  bytes: number;
  /** The job's folder. */
  folder: string;
  exit: ExitName;
  /** What to do now, as a command or a sentence; null if nothing is left to do. */
  nextStep: string | null;
  /** The command that shows the archived files; null if there are none. */
  look: string | null;
}
