import { endpoints } from "../../api/endpoints.js";
import type { Me } from "../../api/records.js";
import { type Service, ServiceError } from "../../client/service.js";
import { requestsTold } from "../../core/charges/readings.js";
import { type Credits, creditsTold } from "../../core/money.js";
import type { BalanceMark, SpendLog } from "../../core/ports/spend-log.js";
import type { Lane, Lanes } from "../../core/quota/quota.js";
import { dayMs } from "../../core/quota/quota.js";
import { shortText } from "../../text/terminal.js";

export interface ReadingPorts {
  service: Pick<Service, "me" | "time">;
  books: Pick<SpendLog, "read">;
  lanes: Pick<Lanes, "bracket">;
}

/** What GET me has told, and which paid requests its balance has in it. */
export interface AccountReading {
  me: Me;
  mark: BalanceMark;
}

/** Whether the counters went into the books. */
export function isBooked({ mark }: AccountReading): boolean {
  return mark.reading !== null;
}

/**
 * GET me. While no POST of the key is under way in any process, the counters that it tells go into the books as well.
 * Throws ServiceError.
 */
export async function readAccount(ports: ReadingPorts): Promise<AccountReading> {
  const bracket = ports.lanes.bracket();
  if (bracket !== null) return readWithin(bracket, ports);
  const { me, seq } = await ports.service.me();
  return { me, mark: markOf(ports, seq, null) };
}

/**
 * GET me for the books: while a POST of the key is under way it would tell them nothing, so it is not asked for, and the
 * result is null. Throws ServiceError, also where it told no counters.
 */
export async function readCounters(ports: ReadingPorts): Promise<AccountReading | null> {
  const bracket = ports.lanes.bracket();
  if (bracket === null) return null;
  const { wrong, ...reading } = await readWithin(bracket, ports);
  if (wrong !== null) throw new ServiceError("unreadable", `GET ${endpoints.me.path}: ${wrong}`);
  return reading;
}

async function readWithin(
  bracket: Lane,
  ports: ReadingPorts,
): Promise<AccountReading & { wrong: string | null }> {
  const { service, books } = ports;
  try {
    const { me, over, seq, servedAt } = await service.me();
    const counters = countersIn(me);
    if (typeof counters === "string") return { me, wrong: counters, mark: markOf(ports, seq, null) };
    const reading = await books.read({ ...counters, over, servedAt });
    return { me, wrong: null, mark: markOf(ports, seq, reading) };
  } finally {
    bracket.release();
  }
}

function markOf({ service }: ReadingPorts, seq: number, reading: number | null): BalanceMark {
  return { seq, reading, dayBefore: service.time.now.earliest - dayMs };
}

/** The key's counters; where one of them is none, in words what was expected: half a reading proves nothing. */
export function countersIn({ credits, api_key: key }: Me): { used: Credits; requests: number } | string {
  const used = creditsTold(credits.used_this_key);
  const requests = requestsTold(key.requests_count);
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
