import type { Wait } from "../../client/service-clock.js";
import { balanceTold, type Credits, noCredits } from "../../core/money.js";
import type { Parked } from "../../core/next/next.js";
import { isLongWait, nextSendAt, type Quota, waitsFor } from "../../core/quota/quota.js";
import { readAccount } from "./account-reading.js";
import type { Caps } from "./caps.js";
import type { GatePorts } from "./ports.js";

/** Milliseconds between two readings of a balance that has run out. */
const balanceMs = 5 * 60_000;

/** Reads the balance where the run waits for credits, and where the balance to keep seems to be reached. */
export class Balance {
  /** While credits are waited for: until the next reading. */
  private nextReading: Wait | null = null;

  constructor(
    private readonly ports: GatePorts,
    private readonly runId: number,
    private readonly caps: Caps,
    private readonly countRequest: () => void,
  ) {}

  get isAwaited(): boolean {
    return this.nextReading !== null;
  }

  /** When the balance is read next (UTC ms); null where nothing waits for credits. */
  get wakeAt(): number | null {
    return this.nextReading?.until ?? null;
  }

  /** The service refused a paid request for lack of credits. */
  awaitCredits(detail: string): void {
    if (!this.isAwaited) this.ports.log.warn({}, `out of credits (${detail}); waiting for more`);
    this.nextReading = this.ports.service.time.wait(balanceMs);
  }

  /** Reads the balance when that is due, so that a run that waits for credits goes on by itself. */
  async readIfDue(parked: Parked): Promise<void> {
    if (!this.nextReading?.isOver) return;
    const { planned } = await this.ports.store.due(this.runId, 1, parked, null);
    const balance = await this.read();
    const isEnough = balance !== null && balance >= (planned[0]?.price ?? noCredits);
    this.nextReading = isEnough ? null : this.ports.service.time.wait(balanceMs);
  }

  /**
   * The balance to keep seems to be reached, so the balance is read once more: what other workspaces had in flight at
   * the last reading may have been counted twice, and what has failed since may be back. Returns whether there is
   * something new; false also where a request would have to wait for long.
   */
  async recheck(committed: Credits, quota: Quota): Promise<boolean> {
    const now = this.ports.clock.now();
    if (isLongWait(waitsFor(quota, now), nextSendAt(quota, now) - now)) return false;
    return this.caps.allowRecheck(committed) && (await this.read()) !== null;
  }

  /** The balance; null where it could not be read. */
  private async read(): Promise<Credits | null> {
    const { ports, caps } = this;
    const reading = await readAccount(ports).catch((error: unknown) => {
      ports.log.warn({ error: String(error) }, "the balance could not be read");
      return null;
    });
    if (reading === null) return null;
    this.countRequest();
    const balance = balanceTold(reading.me.credits.balance);
    if (balance !== null) caps.takeReading(balance, reading.mark);
    return balance;
  }
}
