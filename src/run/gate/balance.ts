import { endpoints } from "../../api/endpoints.js";
import type { Me } from "../../api/records.js";
import { type MeRequest, type Service, ServiceError } from "../../client/service.js";
import type { Wait } from "../../client/service-clock.js";
import { asRequestCount } from "../../core/charges/readings.js";
import { asBalance, asCredits, type Credits, noCredits } from "../../core/money.js";
import type { Parked } from "../../core/next/next.js";
import type { BalanceMark } from "../../core/ports/spend-log.js";
import {
  dayMs,
  freeSlots,
  isLongWait,
  type Lane,
  type Lanes,
  nextSendAt,
  type Quota,
  waitsFor,
} from "../../core/quota/quota.js";
import { plainReason, type Reason } from "../../core/reason.js";
import type { SpendLog } from "../../store/accounts/spend-log.js";
import { shortText } from "../../text/terminal.js";
import type { Caps } from "./caps.js";
import type { GatePorts } from "./ports.js";

export interface ReadingPorts {
  service: Pick<Service, "me" | "time">;
  spendLog: Pick<SpendLog, "read">;
  lanes: Pick<Lanes, "bracket">;
}

/** What GET me returned, and which paid requests its balance includes. */
export interface AccountReading {
  me: Me;
  mark: BalanceMark;
}

/** Whether the counters went into the spend log. */
export function isLogged({ mark }: AccountReading): boolean {
  return mark.reading !== null;
}

/**
 * GET me. While no POST of the key is in flight in any process, the counters in its answer go into the spend log as
 * well. Throws ServiceError.
 */
export async function readAccount(ports: ReadingPorts, how: MeRequest = {}): Promise<AccountReading> {
  const bracket = ports.lanes.bracket();
  if (bracket !== null) return readWithin(bracket, ports, how);
  const { me, seq } = await ports.service.me(how);
  return { me, mark: markOf(ports, seq, null) };
}

/**
 * GET me for the spend log. While a POST of the key is in flight the counters would prove nothing, so no request is
 * sent and the result is null. Throws ServiceError, also if the answer has no counters, and if the service asks for a
 * pause: nobody can send a paid request while this one waits.
 */
export async function readCounters(ports: ReadingPorts): Promise<AccountReading | null> {
  const bracket = ports.lanes.bracket();
  if (bracket === null) return null;
  const { wrong, ...reading } = await readWithin(bracket, ports, { waits: false });
  if (wrong !== null) throw new ServiceError("unreadable", `GET ${endpoints.me.path}: ${wrong}`);
  return reading;
}

async function readWithin(
  bracket: Lane,
  ports: ReadingPorts,
  how: MeRequest,
): Promise<AccountReading & { wrong: string | null }> {
  const { service, spendLog } = ports;
  try {
    const { me, over, seq, servedAt } = await service.me(how);
    const counters = countersIn(me);
    if (typeof counters === "string") return { me, wrong: counters, mark: markOf(ports, seq, null) };
    const reading = await spendLog.read({ ...counters, over, servedAt });
    return { me, wrong: null, mark: markOf(ports, seq, reading) };
  } finally {
    bracket.release();
  }
}

function markOf({ service }: ReadingPorts, seq: number, reading: number | null): BalanceMark {
  return { seq, reading, dayBefore: service.time.now.earliest - dayMs };
}

/** The key's counters, or in words what was expected if one of them is not a number: half a reading proves nothing. */
export function countersIn({ credits, api_key: key }: Me): { used: Credits; requests: number } | string {
  const used = asCredits(credits.used_this_key);
  const requests = asRequestCount(key.requests_count);
  if (used === null || used < 0)
    return `expected an amount of credits at credits.used_this_key, got ${gotText(credits.used_this_key)}`;
  return requests === null
    ? `expected a count at api_key.requests_count, got ${gotText(key.requests_count)}`
    : { used, requests };
}

function gotText(value: unknown): string {
  return value === undefined ? "nothing" : shortText(JSON.stringify(value), gotCharactersMax);
}

const gotCharactersMax = 40;

/** Milliseconds between two readings of a balance that is used up. */
const balanceMs = 5 * 60_000;

/** Reads the balance while the run waits for credits, and when the balance to keep seems to be reached. */
export class Balance {
  /** While credits are waited for: until the next reading. */
  private nextReading: Wait | null = null;

  constructor(
    private readonly ports: GatePorts,
    private readonly runId: number,
    private readonly caps: Caps,
    private readonly countRequest: () => void,
  ) {}

  private get isAwaited(): boolean {
    return this.nextReading !== null;
  }

  /** Why nothing is bought while credits are waited for. */
  get against(): Reason | null {
    if (!this.isAwaited) return null;
    return plainReason("credits", this.wakeAt);
  }

  /** When the balance is read next (UTC ms); null if nothing waits for credits. */
  get wakeAt(): number | null {
    return this.nextReading?.until ?? null;
  }

  /** The service refused a paid request for lack of credits. */
  awaitCredits(detail: string): void {
    if (!this.isAwaited) this.ports.log.warn({}, `out of credits (${detail}); waiting for more`);
    this.nextReading = this.ports.service.time.wait(balanceMs);
  }

  /** Reads the balance when a reading is due, so that a run that waits for credits continues automatically. */
  async readIfDue(parked: Parked): Promise<void> {
    if (!this.nextReading?.isOver || !(await this.hasSlot())) return;
    const { planned } = await this.ports.store.due(this.runId, 1, parked, null);
    const balance = await this.read();
    const isEnough = balance !== null && balance >= (planned[0]?.price ?? noCredits);
    this.nextReading = isEnough ? null : this.ports.service.time.wait(balanceMs);
  }

  /**
   * The balance to keep seems to be reached, so the balance is read once more: requests of other workspaces that were
   * in flight at the last reading may have been counted twice, and credits of tasks that have failed since may be back.
   * Returns whether the reading is new; false also if a request would have to wait for long.
   */
  async recheck(committed: Credits, quota: Quota): Promise<boolean> {
    const now = this.ports.clock.now();
    if (isLongWait(waitsFor(quota, now), nextSendAt(quota, now) - now)) return false;
    return this.caps.allowRecheck(committed) && (await this.read()) !== null;
  }

  /** Whether a reading that is due needs no waiting: all work of the run would wait with it. */
  private async hasSlot(): Promise<boolean> {
    const { accounts, accountId, clock, service } = this.ports;
    const quota = await accounts.quota(accountId);
    const now = clock.now();
    if (freeSlots(quota, now) >= 1) return true;
    this.nextReading = service.time.wait(nextSendAt(quota, now) - now);
    return false;
  }

  /** The balance; null if it could not be read. */
  private async read(): Promise<Credits | null> {
    const { ports, caps } = this;
    const reading = await readAccount(ports, { waits: false }).catch((error: unknown) => {
      ports.log.warn({ error: String(error) }, "the balance could not be read");
      return null;
    });
    if (reading === null) return null;
    this.countRequest();
    const balance = asBalance(reading.me.credits.balance);
    if (balance !== null) caps.takeReading(balance, reading.mark);
    return balance;
  }
}
