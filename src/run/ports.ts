import type { DiskRefusal } from "../archive/disk/room.js";
import type { SaveRequest, SaveResult } from "../archive/save.js";
import type { Service } from "../client/service.js";
import type { AlarmClock } from "../clock.js";
import type { Credits } from "../core/money.js";
import type { RunOptions } from "../core/next/options.js";
import type { PollProfile } from "../core/pace/pressure.js";
import type { Accounts } from "../core/ports/accounts.js";
import type { Log } from "../core/ports/send.js";
import type { KeepCreditsCap, SpendLog } from "../core/ports/spend-log.js";
import type { Run, Store } from "../core/ports/store.js";
import type { Lanes } from "../core/quota/lanes.js";
import type { Receipts } from "./receipts/receipts.js";
import type { SettlingSettings } from "./settling.js";

/** Where a run meets the world. */
export interface RunPorts {
  store: Store;
  accounts: Accounts;
  accountId: number;
  /** Of the key. */
  fingerprint: string;
  books: SpendLog;
  /** The workspace's name among those of the account. */
  workspace: string;
  service: Service;
  receipts: Receipts;
  lanes: Lanes;
  save(request: SaveRequest, signal: AbortSignal): Promise<SaveResult>;
  /** Why the disk would refuse every file of a job's folder now; null where there is room. */
  refusal(jobFolder: string): Promise<DiskRefusal | null>;
  /** Whether there is a file at this path. */
  exists(path: string): Promise<boolean>;
  clock: AlarmClock;
  log: Log;
}

/** A balance that must be left: what may be taken is the balance beyond it when that was read last. */
export interface Keep extends KeepCreditsCap {
  least: Credits;
}

export interface RunSettings {
  run: Run;
  /** POSTs, polls and downloads that may be in flight at once. */
  lanes: number;
  polls: number;
  downloads: number;
  maxCredits: Credits | null;
  /** The same by model. */
  modelCaps: ReadonlyMap<string, Credits>;
  /** What must be left of the balance. */
  keep: Keep | null;
  /** What all runs of the account together may spend from midnight to midnight. */
  daily: Credits | null;
  /** Failed items after which nothing more is submitted. */
  maxFailures: RunOptions["maxFailures"];
  /** How often a task that failed at the provider is tried again. */
  retries: number;
  /** Submits go in the manifest's order, because the credits do not reach for all and somebody was told how far. */
  inOrder: boolean;
  /** How eagerly to look at tasks; null leaves it to what is short. */
  profile: PollProfile | null;
  /** What a refusal for lack of credits does: ends submitting, or waits for more. */
  onInsufficient: "stop" | "wait";
  onDailyLimit: "stop" | "wait";
  /** When submitting ends (UTC ms). */
  deadline: number | null;
  /** How long the run stays open for overdue tasks alone, in ms. */
  overdueWaitMs: number;
  /** How long the service may be out of reach before the run ends, in ms. */
  unreachableMs: number;
  settling: Omit<SettlingSettings, "runId">;
}
