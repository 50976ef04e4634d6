import type { Endpoint } from "../../../src/api/endpoints.js";
import type { PlanLimits } from "../../../src/api/plans.js";
import type { Accounts } from "../../../src/core/ports/accounts.js";
import type { Pacing, Quota } from "../../../src/core/quota/quota.js";
import { openAccounts } from "../../../src/store/accounts/accounts.js";
import type { BenchLedger, Place } from "./ledger.js";

/** The program's own ledger, pacings included, on virtual time. */
export class AccountLedger implements BenchLedger {
  /** How requests follow one another by now. */
  pacing: Pacing = "burst";
  private readonly accounts: Accounts;
  private id = 0;

  constructor(
    private readonly limits: PlanLimits,
    clock: () => number,
  ) {
    this.accounts = openAccounts(":memory:", { now: clock, monotonic: clock, sleep: async () => {} });
  }

  async open(): Promise<this> {
    this.id = (await this.accounts.accountOf("bench", "key")).id;
    await this.accounts.setLimits(this.id, this.limits);
    return this;
  }

  quota(): Promise<Quota> {
    return this.accounts.quota(this.id);
  }

  async reserve(endpoint: Endpoint): Promise<Place | null> {
    const { ticket } = await this.accounts.reserve({ accountId: this.id, fingerprint: "key" }, endpoint);
    if (ticket === null) return null;
    return {
      answered: (refusedMs) => {
        // The ledger writes before it returns; in virtual time nothing comes in between.
        void this.accounts.answered(ticket, refusedMs !== null);
        if (refusedMs !== null) void this.silence(refusedMs);
      },
    };
  }

  private async silence(ms: number): Promise<void> {
    const { slowed } = await this.accounts.silence(this.id, ms);
    this.pacing = slowed ?? this.pacing;
  }

  async close(): Promise<void> {
    await this.accounts.close();
  }
}
