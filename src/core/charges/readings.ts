import { asNumber } from "../../api/values.js";
import { type Credits, minus, noCredits, sumOf } from "../money.js";
import { dayMs } from "../quota/quota.js";

/** Compares readings of a key's counters with its spend log. `reconcile` explains why. */

export interface CounterReading extends KeyRequests {
  id: number;
  /** Position in the order of everything in the spend log. */
  seq: number;
  /** UTC ms by this machine. */
  at: number;
  /** UTC ms by the service's clock; null if unknown. */
  servedAt: number | null;
  used: Credits;
}

/** One POST in the spend log, from any workspace on this machine. */
export interface SpendLogEntry {
  id: number;
  intendedSeq: number;
  /** The latest time at which it can have been sent, by the service's clock as far as known (UTC ms). */
  sentAt: number;
  /** When it was last repeated: the service knows it by its key, and charges it once. Null if it never was. */
  repeatedSeq: number | null;
  /** Null while it has no recorded outcome: it is in flight, or its process has ended. */
  endedSeq: number | null;
  /** When its answer came or the wait for it ended (UTC ms by this machine). */
  endedAt: number | null;
  price: Credits;
  outcome: "free" | "accepted" | "unknown" | null;
  completeError: boolean;
  /** The charge of an accepted POST; null if the service did not report it. */
  charged: Credits | null;
  task: "open" | "completed" | "failed" | null;
  /** The final charge of a failed task: 0, unless the service reported another. */
  kept: Credits;
  /** When the task ended, by the service's clock; null if not reported. */
  taskEndedAt: number | null;
  /** The position of its last poll in the spend log; 0 before the first poll. */
  polledSeq: number;
  /** When it was last polled (UTC ms by this machine); null before the first poll. */
  polledAt: number | null;
  verdict: Verdict | null;
  /** The position from which a found charge is part of the counter. */
  verdictSeq: number | null;
}

export type Verdict = "not_charged" | "charged" | "undecided";
export type Hypothesis = "net" | "gross";

/** What is known about a key's counters from earlier readings. */
export interface LearnedCounting {
  hypotheses: readonly Hypothesis[];
  /** The credit counter has matched the spend log exactly over requests that moved it. */
  trusted: boolean;
  /** When use of the key from elsewhere was last seen (UTC ms by the service if known), or null. */
  foreignAt: number | null;
}

export const nothingLearnedYet: LearnedCounting = {
  hypotheses: ["net", "gross"],
  trusted: false,
  foreignAt: null,
};

export interface ChargeEvidence extends LearnedCounting {
  baseline: CounterReading;
  /** After the baseline, oldest first. */
  readings: readonly CounterReading[];
  /** POSTs that may have moved the counters since the baseline, or are not settled. */
  entries: readonly SpendLogEntry[];
  now: number;
  settings: ReconcileSettings;
}

export interface ReconcileSettings {
  /** The two times (ms) after its end at which an unknown POST must show no charge. */
  settleMs: readonly [number, number];
  /** A complete GENERATION_ERROR counts as not charged, without a reading. */
  errorIsFree: boolean;
}

export const defaultReconcile: ReconcileSettings = { settleMs: [240_000, 900_000], errorIsFree: false };

/** How much (ms) two clocks may differ without either having been set. */
const skewMs = 60_000;

/** The part of the counter's growth since the baseline that the spend log does not explain. */
export function residual(evidence: ChargeEvidence, reading: CounterReading, hypothesis: Hypothesis): Credits {
  const { baseline } = evidence;
  const explained = minus(known(evidence, reading, hypothesis), known(evidence, baseline, hypothesis));
  return minus(minus(reading.used, baseline.used), explained);
}

/** What the key had been charged by the time of a reading, according to the spend log. */
function known({ entries }: ChargeEvidence, reading: CounterReading, hypothesis: Hypothesis): Credits {
  const charges = entries.map((entry) => {
    const isFound = entry.verdict === "charged";
    const chargedSeq = isFound ? (entry.verdictSeq ?? 0) : entry.intendedSeq;
    if (chargedSeq > reading.seq) return noCredits;
    // A charge whose task was adopted later counts as accepted, and its task may fail like any other.
    if (entry.outcome !== "accepted") return isFound ? entry.price : noCredits;
    const returned = hypothesis === "net" && entry.task === "failed" && endedBefore(entry, reading);
    return returned ? entry.kept : (entry.charged ?? entry.price);
  });
  return sumOf(charges);
}

/** Whether a task ended before a reading: by the service's clock, if it is known for both. */
function endedBefore(entry: SpendLogEntry, reading: CounterReading): boolean {
  const ended = comparableEnd(entry, reading);
  return ended === null ? entry.polledSeq < reading.seq : ended <= servedAt(reading);
}

/** When a task ended, by the service's clock; null unless it is known for the reading too. */
function comparableEnd({ taskEndedAt }: SpendLogEntry, reading: CounterReading): number | null {
  return reading.servedAt === null ? null : taskEndedAt;
}

/** Whether the spend log's account of a reading is reliable: now, possibly once more tasks have ended, or never. */
export function clarity(evidence: ChargeEvidence, reading: CounterReading): "clear" | "pending" | "never" {
  let result: "clear" | "pending" | "never" = "clear";
  for (const entry of evidence.entries) {
    if (isAwaited(evidence, entry, reading)) result = "pending";
    if (entry.intendedSeq > reading.seq) continue;
    if (entry.task === "failed" && mayReturn(evidence, entry, reading)) return "never";
    if (reading !== evidence.baseline && wasRepeatedAfter(entry, reading)) return "never";
  }
  return result;
}

/** Whether a POST's task was open when a reading was taken, and may still be polled. */
export function isAwaited(evidence: ChargeEvidence, entry: SpendLogEntry, reading: CounterReading): boolean {
  return isUnseen(entry, reading) && sinceMs(evidence, lastSeen(entry), reading) < longestTaskMs;
}

/** Whether a task that was open before a reading has not been polled since. */
function isUnseen(
  { outcome, task, intendedSeq, polledSeq }: SpendLogEntry,
  { seq }: CounterReading,
): boolean {
  return outcome === "accepted" && task === "open" && intendedSeq <= seq && polledSeq <= seq;
}

/** When an open task was known to be open for the last time. */
function lastSeen(entry: SpendLogEntry): Happening {
  return entry.polledSeq > 0 ? pollOf(entry) : endOf(entry);
}

/**
 * Whether the credits of a failed task may have come back only after a reading. Services book them when the task ends
 * or when it is first asked for, and some a while later.
 */
function mayReturn(evidence: ChargeEvidence, entry: SpendLogEntry, reading: CounterReading): boolean {
  const ended = comparableEnd(entry, reading);
  const hadEnded = ended === null || ended < servedAt(reading) + skewMs;
  if (entry.polledSeq > reading.seq) return hadEnded;
  const [settle] = evidence.settings.settleMs;
  if (ended !== null && ended > servedAt(reading) - settle && hadEnded) return true;
  return sinceMs(evidence, pollOf(entry), reading) < settle;
}

/**
 * How long (ms) an unpolled task can stay open at most. Services finish within minutes, and none states a longer time; a
 * task open for longer is polled by its workspace, if it still exists, and each poll restarts this time. After it a task
 * has ended: if it failed, its credits were returned before then, or never will be.
 */
const longestTaskMs = dayMs;

/**
 * Charges, found or possible, whose tasks cannot be polled, or have not been for as long as any task takes: their
 * workspace is gone. If such a task fails, its credits are returned at an unknown time, so a reading may lack them,
 * unless the baseline was read so late that it lacks them as well.
 */
export function lostTasks(evidence: ChargeEvidence, reading: CounterReading): SpendLogEntry[] {
  const { baseline } = evidence;
  return evidence.entries.filter((entry) => {
    const { outcome, verdict, verdictSeq, intendedSeq } = entry;
    if (isUnseen(entry, reading)) return sinceMs(evidence, lastSeen(entry), baseline) < longestTaskMs;
    if (intendedSeq > reading.seq) return false;
    // No reading is taken while a POST is in flight, so its process has ended, at an unknown time.
    if (outcome === null) return servedAt(baseline) - entry.sentAt < longestTaskMs;
    const isFound = verdict === "charged" && (verdictSeq ?? 0) <= reading.seq;
    const mayHaveTask = outcome === "unknown" && (isFound || verdict === "undecided");
    return mayHaveTask && elapsed(evidence, entry, baseline) < longestTaskMs;
  });
}

/** When the counters were last read (UTC ms by the service if known). */
export function lastServedAt({ baseline, readings }: ChargeEvidence): number {
  return servedAt(readings.at(-1) ?? baseline);
}

/** When a reading was taken (UTC ms by the service if known). */
export function servedAt(reading: CounterReading): number {
  return reading.servedAt ?? reading.at;
}

/** The POSTs whose charge may be in a reading but not in the baseline, including charges found only in a later reading. */
export function candidates(evidence: ChargeEvidence, { seq }: CounterReading): SpendLogEntry[] {
  return evidence.entries.filter((entry) => {
    const { outcome, verdict, verdictSeq, intendedSeq } = entry;
    const open = verdict === null && (outcome === "unknown" || outcome === null);
    const foundLater = verdict === "charged" && (verdictSeq ?? 0) > seq;
    const mayBeLater = mayComeLate(evidence, entry) || wasRepeatedAfter(entry, evidence.baseline);
    return (open || foundLater || mayBeLater) && intendedSeq <= seq;
  });
}

/**
 * Whether a POST was sent before a reading and repeated after it, and then accepted: one of the two was charged, and it is not
 * known which. Where the charge was found, it is known.
 */
function wasRepeatedAfter(entry: SpendLogEntry, { seq }: CounterReading): boolean {
  const { outcome, verdict, intendedSeq, repeatedSeq } = entry;
  const isBetween = intendedSeq <= seq && (repeatedSeq ?? 0) > seq;
  return outcome === "accepted" && verdict !== "charged" && isBetween;
}

/** The least that the key was charged since the baseline for requests that this machine did not send. */
export function foreignCredits(evidence: ChargeEvidence): Credits {
  const last = evidence.readings.at(-1);
  if (last === undefined || evidence.hypotheses.length === 0) return noCredits;
  const ours = sumOf(candidates(evidence, last).map(({ price }) => price));
  const least = evidence.hypotheses.map((hypothesis) => minus(residual(evidence, last, hypothesis), ours));
  return Math.max(0, Math.min(...least)) as Credits;
}

/** Whether an undecided POST ended so shortly before the baseline that its charge may come after it. */
function mayComeLate(evidence: ChargeEvidence, entry: SpendLogEntry): boolean {
  const { outcome, verdict } = entry;
  const [, late] = evidence.settings.settleMs;
  return (
    outcome === "unknown" && verdict === "undecided" && elapsed(evidence, entry, evidence.baseline) < late
  );
}

/** How long (ms) after the end of a POST a reading was taken. */
export function elapsed(evidence: ChargeEvidence, entry: SpendLogEntry, reading: CounterReading): number {
  return sinceMs(evidence, endOf(entry), reading);
}

/** An event of a POST: its position in the spend log, its time (UTC ms by this machine), and when the POST was sent. */
type Happening = Pick<SpendLogEntry, "sentAt"> & { seq: number; at: number | null };

function endOf({ endedSeq, endedAt, sentAt }: SpendLogEntry): Happening {
  return { seq: endedSeq ?? Number.POSITIVE_INFINITY, at: endedAt, sentAt };
}

function pollOf({ polledSeq, polledAt, sentAt }: SpendLogEntry): Happening {
  return { seq: polledSeq, at: polledAt, sentAt };
}

/**
 * How long (ms) after an event in the spend log a reading was taken; the least possible if this machine's clock was set
 * in between; 0 if the event came after the reading.
 */
function sinceMs({ baseline, readings }: ChargeEvidence, event: Happening, reading: CounterReading): number {
  if (event.seq > reading.seq) return 0;
  const until = [baseline, ...readings].filter(({ seq }) => seq <= reading.seq);
  const offsets = until.map((each) => servedAt(each) - each.at);
  const isSteady = Math.max(...offsets) - Math.min(...offsets) <= skewMs;
  const since = (other: CounterReading | undefined) => (other ? servedAt(reading) - servedAt(other) : null);
  // Only the service's time since the first later reading is certain.
  const least = since(until.find(({ seq }) => seq > event.seq) ?? reading) ?? 0;
  const sinceSent = servedAt(reading) - event.sentAt;
  const most = Math.min(
    since(until.findLast(({ seq }) => seq < event.seq)) ?? Number.POSITIVE_INFINITY,
    // A POST sent before a reading that seems later was sent while a clock was ahead, at an unknown time.
    sinceSent < -skewMs ? Number.POSITIVE_INFINITY : sinceSent,
  );
  if (!isSteady || event.at === null) return least;
  // The clock may have been wrong only at the event: it is after the sending, and between two readings or before the first.
  const ms = reading.at - event.at;
  return ms >= least - skewMs && ms <= most + skewMs ? ms : least;
}

/**
 * Detects use of a key from elsewhere: the service's request count grows by more than this machine can have sent. It is
 * unknown whether a count includes a request in flight or lost, so between two readings such a request counts as ours in
 * the later one; once it can no longer arrive, it explains no later growth.
 */
export interface KeyRequests {
  /** Requests of the key, as the service counts them. */
  requests: number;
  /** Requests that this machine had sent with the key when the answer arrived. */
  sent: number;
  /** Those that were over before the service was asked: answered, or lost so long ago that they can no longer arrive. */
  over: number;
}

/** A key before its first request. */
export const newKey: Pick<KeyRequests, "requests" | "over"> = { requests: 0, over: 0 };

/** The key's request count from the service; null if it is not a valid count. */
export function asRequestCount(value: unknown): number | null {
  const count = asNumber(value);
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** The least number of requests made from elsewhere between two readings. */
export function foreignRequests(
  earlier: Pick<KeyRequests, "requests" | "over">,
  later: Pick<KeyRequests, "requests" | "sent">,
): number {
  return Math.max(0, later.requests - earlier.requests - (later.sent - earlier.over));
}
