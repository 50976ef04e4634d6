import type { DiskRefusal } from "../../archive/disk/space.js";
import type { Service } from "../../client/service.js";
import type { AlarmClock } from "../../clock.js";
import type { ReconcileSettings } from "../../core/charges/readings.js";
import type { Credits } from "../../core/money.js";
import type { Log } from "../../core/ports/send.js";
import type { KeepCreditsCap } from "../../core/ports/spend-log.js";
import type { Run } from "../../core/ports/store.js";
import type { Lanes } from "../../core/quota/quota.js";
import type { Accounts } from "../../store/accounts/accounts.js";
import type { SpendLog } from "../../store/accounts/spend-log.js";
import type { Store } from "../../store/workspace/workspace.js";

/** What the gate asks. */
export interface GatePorts {
  store: Store;
  accounts: Accounts;
  accountId: number;
  spendLog: SpendLog;
  service: Service;
  lanes: Lanes;
  /** Why the disk would refuse every file of a job's folder now; null if there is room. */
  refusal(jobFolder: string): Promise<DiskRefusal | null>;
  clock: AlarmClock;
  log: Log;
}

/** The balance to keep: the run may take what the latest reading shows beyond it. */
export interface Keep extends KeepCreditsCap {
  least: Credits;
}

export interface SettlingSettings extends ReconcileSettings {
  /** Requests lost in this execution and without a verdict at which submitting waits. */
  unsettledMax: number;
  /** Whether the run stays open until every unknown outcome is settled. */
  wait: boolean;
  /** Credits that may be spent again automatically on items whose first charge produced nothing. */
  orphanCredits: Credits;
}

/** The run, whose options say what the user allows, and what applies to this execution alone. */
export interface GateSettings {
  run: Run;
  /** The most that the run may have committed when the command that was given this price ends. */
  priceCap?: Credits | null;
  /** What must be left of the balance. */
  keep: Keep | null;
  /** When submitting ends (UTC ms). */
  deadline: number | null;
  /** How long the service may be unreachable before the run ends, in ms. */
  unreachableMs: number;
  settling: SettlingSettings;
}
