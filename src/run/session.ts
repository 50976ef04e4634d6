import type { SaveRequest, SaveResult } from "../archive/save.js";
import type { Service } from "../client/service.js";
import type { Clock } from "../clock.js";
import type { Accounts } from "../core/accounts.js";
import type { Log } from "../core/log.js";
import type { Credits } from "../core/money.js";
import { backoffMs } from "../core/retry.js";
import type { Stop, StopKind } from "../core/stop.js";
import type { Run, Store } from "../core/store.js";

/** Where a run meets the world. */
export interface RunPorts {
  store: Store;
  accounts: Accounts;
  accountId: number;
  service: Service;
  save(request: SaveRequest, signal: AbortSignal): Promise<SaveResult>;
  clock: Clock;
  log: Log;
}

export interface RunSettings {
  run: Run;
  /** POSTs, polls and downloads that may be in flight at once. */
  lanes: number;
  polls: number;
  downloads: number;
  maxCredits: Credits | null;
  onDailyLimit: "stop" | "wait";
  /** How long the service may be out of reach before the run ends, in ms. */
  unreachableMs: number;
}

/** Two unknown outcomes in a row: something is wrong that more paid requests would only make worse. */
const unknownsInARowMax = 2;

/**
 * What one process knows of its run besides the database: why it should stop, whether the service can be reached,
 * and the requests it has made. Nothing in here is needed to resume.
 */
export class Session {
  readonly stops: Stop[] = [];
  requests: number;
  /** No request before then (UTC ms), because the last ones did not reach the service. */
  silentUntil = 0;
  /** The last thing the disk refused, while it does. */
  diskTrouble: string | null = null;
  private failures = 0;
  private failingSince: number | null = null;
  private unknowns = 0;

  constructor(
    readonly ports: RunPorts,
    readonly settings: RunSettings,
  ) {
    this.requests = settings.run.requests;
  }

  stop(kind: StopKind, message: string): void {
    if (this.stops.some((stop) => stop.kind === kind)) return;
    this.stops.push({ kind, message });
    this.ports.log.warn({ stop: kind }, message);
  }

  stopped(kind: StopKind): boolean {
    return this.stops.some((stop) => stop.kind === kind);
  }

  /** The service answered something. */
  reached(): void {
    this.requests++;
    this.failures = 0;
    this.failingSince = null;
  }

  /** A request found no service, or no answer. */
  missed(reason: string): void {
    const now = this.ports.clock.monotonic();
    this.failingSince ??= now;
    this.failures++;
    this.silentUntil = this.ports.clock.now() + backoffMs(this.failures);
    if (now - this.failingSince >= this.settings.unreachableMs) {
      this.stop(
        "unreachable",
        `the service cannot be reached (${reason}); run \`bulkgen resume\` when it is back`,
      );
    }
  }

  /** A paid request was answered clearly. */
  answeredClearly(): void {
    this.unknowns = 0;
  }

  /** A paid request has an unknown outcome. */
  leftUnknown(reason: string): void {
    this.unknowns++;
    if (this.unknowns < unknownsInARowMax) return;
    this.stop(
      "unknowns",
      `${this.unknowns} paid requests in a row have an unknown outcome (${reason}); nothing more is submitted`,
    );
  }

  /** The service refused the key, the subscription or the balance. */
  refused(status: 401 | 402 | 403 | 429, detail: string): void {
    if (status === 401)
      this.stop(
        "key",
        `the service refused the API key (${detail}); set a valid one and run \`bulkgen resume\``,
      );
    if (status === 403)
      this.stop(
        "subscription",
        `no active subscription (${detail}); activate a plan and run \`bulkgen resume\``,
      );
    if (status === 402) this.stop("credits", `out of credits (${detail}); top up and run \`bulkgen resume\``);
  }
}
