import type { PlanName } from "../../../src/api/plans.js";
import { admit } from "../../../src/service/limiter/admit.js";
import type { AccountRecord, Change, RequestWindow, TokenBucket } from "../../../src/service/state/state.js";
import { allSwitches, type Switches, type SwitchSettings } from "../../../src/service/state/switches.js";
import { Ledger } from "../../sim/ledger.js";

/** The sandbox's limiters, each as a service may have it. */
export const limiters = {
  "sliding log": {},
  "fixed window": { kind: "fixed-window" },
  "fixed window, from the middle of the minute": { kind: "fixed-window", alignMs: 30_000 },
  "full bucket": { kind: "token-bucket" },
  "sliding counter": { kind: "sliding-counter" },
  "sliding counter, refused ones count": { kind: "sliding-counter", countsRejected: true },
  "bucket of 5": { kind: "token-bucket", burst: 5 },
  "bucket of 1": { kind: "token-bucket", burst: 1 },
} as const satisfies Record<string, SwitchSettings["limiter"]>;

export type LimiterKind = keyof typeof limiters;

/** What stands at the service's door: the sandbox's own limiter, over a log in memory. */
export class Door extends Ledger {
  private readonly buckets = new Map<RequestWindow, TokenBucket>();
  private readonly switches: Switches["limiter"];
  private readonly id = "account";

  constructor(plan: PlanName, kind: LimiterKind) {
    super();
    this.switches = allSwitches({ limiter: limiters[kind] }).limiter;
    const account: Partial<AccountRecord> = { id: this.id, plan, admitted: 0 };
    this.addAccount(account as AccountRecord);
  }

  /** A request arrives: null when it may pass, else the milliseconds of its `Retry-After`. */
  refuses(now: number): number | null {
    const { waitMs, changes } = admit(this, this.account(this.id) as AccountRecord, this.switches, now);
    this.commit(changes);
    return waitMs === null ? null : 1_000 * Math.ceil(waitMs / 1_000);
  }

  override bucket(_account?: string, window?: RequestWindow): TokenBucket | undefined {
    return this.buckets.get(window as RequestWindow);
  }

  override commit(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "bucket drawn") this.buckets.set(change.window, change.bucket);
      else super.commit([change]);
    }
  }
}
