import type { Endpoint } from "../../../src/api/endpoints.js";
import type { PlanLimits } from "../../../src/api/plans.js";
import type { Ticket } from "../../../src/core/ports/send.js";
import type { Pacing, Quota } from "../../../src/core/quota/quota.js";
import { type Accounts, openAccounts } from "../../../src/store/accounts/accounts.js";
import type { BenchLedger, Place } from "./ledger.js";

/** The program's own ledger, pacings included, on virtual time. */
export class AccountLedger implements BenchLedger {
  /** How requests follow one another by now. */
  pacing: Pacing = "burst";
  private readonly accounts: Accounts;
  private id = 0;
  /** The answers so far are in the ledger: no time passes until they are, and the next turn is to know of them. */
  private written: Promise<void> = Promise.resolve();

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

  async quota(): Promise<Quota> {
    await this.written;
    return this.accounts.quota(this.id);
  }

  async reserve(endpoint: Endpoint): Promise<Place | null> {
    const { ticket } = await this.accounts.reserve({ accountId: this.id, fingerprint: "key" }, endpoint);
    if (ticket === null) return null;
    return {
      answered: (refusedMs) => {
        this.written = this.write(ticket, refusedMs);
      },
    };
  }

  private async write(ticket: Ticket, refusedMs: number | null): Promise<void> {
    await this.written;
    await this.accounts.answered(ticket, refusedMs !== null);
    if (refusedMs === null) return;
    const { slowed } = await this.accounts.silence(this.id, refusedMs);
    this.pacing = slowed ?? this.pacing;
  }

  async close(): Promise<void> {
    await this.accounts.close();
  }
}
