import {
  type ChargeEvidence,
  type CounterReading,
  defaultReconcile,
  nothingLearnedYet,
  type SpendLogEntry,
} from "../../../src/core/charges/readings.js";
import { reconcile } from "../../../src/core/charges/verdict.js";
import { credits } from "../../../src/core/money.js";

export const minute = 60_000;
export const start = Date.UTC(2026, 0, 1);

/** A reading at so many minutes, after so many POSTs, of so many credits. */
export function reading(
  id: number,
  seq: number,
  at: number,
  used: number,
  change: Partial<CounterReading> = {},
): CounterReading {
  const time = start + at * minute;
  return {
    id,
    seq,
    at: time,
    servedAt: time,
    used: credits(used),
    requests: seq,
    sent: seq,
    over: seq,
    ...change,
  };
}

/** A POST whose picture was there at once, so many minutes after the first reading. */
export function entry(
  id: number,
  seq: number,
  at: number,
  change: Partial<SpendLogEntry> = {},
): SpendLogEntry {
  return {
    id,
    intendedSeq: seq,
    repeatedSeq: null,
    endedSeq: seq + 1,
    sentAt: start + at * minute,
    endedAt: start + at * minute,
    price: credits(4),
    outcome: "accepted",
    completeError: false,
    charged: credits(4),
    task: "completed",
    kept: credits(0),
    taskEndedAt: start + at * minute,
    polledSeq: seq + 2,
    polledAt: start + at * minute,
    verdict: null,
    verdictSeq: null,
    ...change,
  };
}

/** One that nobody answered. */
export function lost(
  id: number,
  seq: number,
  at: number,
  change: Partial<SpendLogEntry> = {},
): SpendLogEntry {
  return entry(id, seq, at, { outcome: "unknown", charged: null, task: null, taskEndedAt: null, ...change });
}

export function evidenceOf(change: Partial<ChargeEvidence>): ChargeEvidence {
  return {
    ...nothingLearnedYet,
    baseline: reading(1, 1, 0, 100),
    readings: [],
    entries: [],
    now: start + 30 * minute,
    settings: defaultReconcile,
    ...change,
  };
}

export const judged = (change: Partial<ChargeEvidence>) => reconcile(evidenceOf(change));
