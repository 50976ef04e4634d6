import type { Entry, Hypothesis, Learned, Reading, Verdict } from "../../core/charges/readings.js";
import type { Credits } from "../../core/money.js";

/** The rows of the books' tables, and the records made of them. */

export interface KeyRow {
  baseline: number | null;
  hypotheses: string;
  trusted: number;
  foreign_at: number | null;
}

export function asLearned(row: KeyRow): Learned {
  return {
    hypotheses: row.hypotheses === "" ? [] : (row.hypotheses.split(",") as Hypothesis[]),
    trusted: row.trusted === 1,
    foreignAt: row.foreign_at,
  };
}

export interface ReadingRow {
  id: number;
  seq: number;
  at: number;
  served_at: number | null;
  used: number;
  requests: number;
  sent: number;
  over: number;
}

export function asReading({ id, seq, at, served_at, used, requests, sent, over }: ReadingRow): Reading {
  return { id, seq, at, servedAt: served_at, used: used as Credits, requests, sent, over };
}

export interface EntryRow {
  id: number;
  fingerprint: string;
  price: number;
  intended_seq: number;
  sent_at: number;
  ended_seq: number | null;
  ended_at: number | null;
  outcome: Entry["outcome"];
  complete_error: number;
  charged: number | null;
  task: Entry["task"];
  kept: number;
  task_ended_at: number | null;
  looked_seq: number;
  looked_at: number | null;
  verdict: Verdict | null;
  verdict_seq: number | null;
  evidence: string | null;
}

export function asEntry(row: EntryRow): Entry {
  return {
    id: row.id,
    intendedSeq: row.intended_seq,
    sentAt: row.sent_at,
    endedSeq: row.ended_seq,
    endedAt: row.ended_at,
    price: row.price as Credits,
    outcome: row.outcome,
    completeError: row.complete_error === 1,
    charged: row.charged as Credits | null,
    task: row.task,
    kept: row.kept as Credits,
    taskEndedAt: row.task_ended_at,
    lookedSeq: row.looked_seq,
    lookedAt: row.looked_at,
    verdict: row.verdict,
    verdictSeq: row.verdict_seq,
  };
}
