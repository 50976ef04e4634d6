import { type Credits, minus, noCredits, plus } from "../money.js";
import { dayMs } from "../quota/quota.js";

/** A reading of a key's counters next to the books: what the two say together. `reconcile` tells what for. */

export interface CounterReading extends KeyRequests {
  id: number;
  /** Place in the order of all that the books hold. */
  seq: number;
  /** UTC ms by this machine. */
  at: number;
  /** UTC ms by the service; null where it did not say. */
  servedAt: number | null;
  used: Credits;
}

/** One POST of the books, from any workspace on this machine. */
export interface SpendLogEntry {
  id: number;
  intendedSeq: number;
  /** When it was sent, by the service's clock as far as it was known; the latest that it can have been (UTC ms). */
  sentAt: number;
  /** Null while nobody has said what became of it: it is under way, or its process is gone. */
  endedSeq: number | null;
  /** When its answer came, or when it was given up (UTC ms by this machine). */
  endedAt: number | null;
  price: Credits;
  outcome: "free" | "accepted" | "unknown" | null;
  completeError: boolean;
  /** What an accepted one was charged; null where the service did not say. */
  charged: Credits | null;
  task: "open" | "completed" | "failed" | null;
  /** What a failed task was charged in the end: 0, unless the service said otherwise. */
  kept: Credits;
  /** When the task ended, by the service's clock; null where it did not say. */
  taskEndedAt: number | null;
  /** When its task was last looked at, in the order of the books; 0 before the first look. */
  lookedSeq: number;
  /** The same in UTC ms by this machine; null before the first look. */
  lookedAt: number | null;
  verdict: Verdict | null;
  /** From when on a charge that was found is part of the counter. */
  verdictSeq: number | null;
}

export type Verdict = "not_charged" | "charged" | "undecided";
export type Hypothesis = "net" | "gross";

/** What earlier readings have taught about a key's counters. */
export interface LearnedCounting {
  hypotheses: readonly Hypothesis[];
  /** The counter of credits has matched the books exactly over requests that moved it. */
  trusted: boolean;
  /** When the key was last seen to be used from elsewhere (UTC ms by the service, where it tells), or null. */
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
  /** Those that may have moved the counters since the baseline, or are not settled. */
  entries: readonly SpendLogEntry[];
  now: number;
  settings: ReconcileSettings;
}

export interface ReconcileSettings {
  /** How long after its end an unknown POST must show no charge: twice, in ms. */
  settleMs: readonly [number, number];
  /** A complete GENERATION_ERROR is taken for not charged, without any reading. */
  errorIsFree: boolean;
}

export const defaultReconcile: ReconcileSettings = { settleMs: [240_000, 900_000], errorIsFree: false };

/** By how much two clocks may disagree without one of them having been set, in ms. */
const skewMs = 60_000;

/** The part of the counter's growth since the baseline that the books do not explain. */
export function residual(evidence: ChargeEvidence, reading: CounterReading, hypothesis: Hypothesis): Credits {
  const { baseline } = evidence;
  const explained = minus(known(evidence, reading, hypothesis), known(evidence, baseline, hypothesis));
  return minus(minus(reading.used, baseline.used), explained);
}

/** What the books say that the key had been charged by the time of a reading. */
function known({ entries }: ChargeEvidence, reading: CounterReading, hypothesis: Hypothesis): Credits {
  const charges = entries.map((entry) => {
    const isFound = entry.verdict === "charged";
    const chargedSeq = isFound ? (entry.verdictSeq ?? 0) : entry.intendedSeq;
    if (chargedSeq > reading.seq) return noCredits;
    // A charge whose task was found again and adopted is accepted as well, and may fail like any other.
    if (entry.outcome !== "accepted") return isFound ? entry.price : noCredits;
    const returned = hypothesis === "net" && entry.task === "failed" && endedBefore(entry, reading);
    return returned ? entry.kept : (entry.charged ?? entry.price);
  });
  return plus(...charges);
}

function endedBefore(entry: SpendLogEntry, reading: CounterReading): boolean {
  const ended = comparableEnd(entry, reading);
  return ended === null ? entry.lookedSeq < reading.seq : ended <= servedAt(reading);
}

/** When a task ended, where it can be held against a reading: by the service's clock, as it tells for both. */
function comparableEnd({ taskEndedAt }: SpendLogEntry, reading: CounterReading): number | null {
  return reading.servedAt === null ? null : taskEndedAt;
}

/** Whether what the books say of a reading can be relied on: at once, perhaps once more tasks have ended, or never. */
export function clarity(evidence: ChargeEvidence, reading: CounterReading): "clear" | "pending" | "never" {
  let result: "clear" | "pending" | "never" = "clear";
  for (const entry of evidence.entries) {
    if (isAwaited(evidence, entry, reading)) result = "pending";
    if (entry.intendedSeq > reading.seq) continue;
    if (entry.task === "failed" && mayReturn(evidence, entry, reading)) return "never";
  }
  return result;
}

/** Whether a POST's task was open when a reading was taken, and somebody may yet look at it. */
export function isAwaited(evidence: ChargeEvidence, entry: SpendLogEntry, reading: CounterReading): boolean {
  return isUnseen(entry, reading) && sinceMs(evidence, lastSeen(entry), reading) < longestTaskMs;
}

/** Whether nobody has looked since a reading at a task that was open before it. */
function isUnseen(
  { outcome, task, intendedSeq, lookedSeq }: SpendLogEntry,
  { seq }: CounterReading,
): boolean {
  return outcome === "accepted" && task === "open" && intendedSeq <= seq && lookedSeq <= seq;
}

/** When an open task was known to be open for the last time. */
function lastSeen(entry: SpendLogEntry): Happening {
  return entry.lookedSeq > 0 ? lookOf(entry) : endOf(entry);
}

/**
 * Whether the credits of a failed task may have come back only after a reading. Services book them when the task ends
 * or when it is first asked for, and some a while later.
 */
function mayReturn(evidence: ChargeEvidence, entry: SpendLogEntry, reading: CounterReading): boolean {
  const ended = comparableEnd(entry, reading);
  const hadEnded = ended === null || ended < servedAt(reading) + skewMs;
  if (entry.lookedSeq > reading.seq) return hadEnded;
  const [settle] = evidence.settings.settleMs;
  if (ended !== null && ended > servedAt(reading) - settle && hadEnded) return true;
  return sinceMs(evidence, lookOf(entry), reading) < settle;
}

/**
 * How long a task goes on that nobody looks at, at most, in ms. Services are done within minutes, and none says more; a
 * task that is open for longer is looked at by its workspace, as long as there is one, and each look is a new begin. Past
 * it a task has ended: if it failed, its credits came back before then, or never do.
 */
const longestTaskMs = dayMs;

/**
 * Charges, found or possible, at whose tasks nobody can look, or has for as long as any task takes: their workspace is
 * gone. One that fails has its credits given back, and nobody is told when, so a reading may lack them, unless the
 * baseline was read so late that it lacks them as well.
 */
export function lostTasks(evidence: ChargeEvidence, reading: CounterReading): SpendLogEntry[] {
  const { baseline } = evidence;
  return evidence.entries.filter((entry) => {
    const { outcome, verdict, verdictSeq, intendedSeq } = entry;
    if (isUnseen(entry, reading)) return sinceMs(evidence, lastSeen(entry), baseline) < longestTaskMs;
    if (intendedSeq > reading.seq) return false;
    // No reading is taken while a POST is under way, so its process is gone, and nobody can say when it ended.
    if (outcome === null) return servedAt(baseline) - entry.sentAt < longestTaskMs;
    const isFound = verdict === "charged" && (verdictSeq ?? 0) <= reading.seq;
    const mayHaveTask = outcome === "unknown" && (isFound || verdict === "undecided");
    return mayHaveTask && elapsed(evidence, entry, baseline) < longestTaskMs;
  });
}

/** When the counters were read last (UTC ms by the service, where it tells). */
export function lastServedAt({ baseline, readings }: ChargeEvidence): number {
  return servedAt(readings.at(-1) ?? baseline);
}

/** When a reading was taken (UTC ms by the service, where it tells). */
export function servedAt(reading: CounterReading): number {
  return reading.servedAt ?? reading.at;
}

/** The unknown POSTs that a reading may hold beyond the baseline, with those whose charge was only found in a later one. */
export function candidates(evidence: ChargeEvidence, { seq }: CounterReading): SpendLogEntry[] {
  return evidence.entries.filter((entry) => {
    const { outcome, verdict, verdictSeq, intendedSeq } = entry;
    const open = verdict === null && (outcome === "unknown" || outcome === null);
    const foundLater = verdict === "charged" && (verdictSeq ?? 0) > seq;
    return (open || foundLater || mayComeLate(evidence, entry)) && intendedSeq <= seq;
  });
}

/** Whether a POST that nobody can judge was given up so short a time before the baseline that its charge may follow. */
function mayComeLate(evidence: ChargeEvidence, entry: SpendLogEntry): boolean {
  const { outcome, verdict } = entry;
  const [, late] = evidence.settings.settleMs;
  return (
    outcome === "unknown" && verdict === "undecided" && elapsed(evidence, entry, evidence.baseline) < late
  );
}

/** How long after the end of a POST a reading was taken, in ms. */
export function elapsed(evidence: ChargeEvidence, entry: SpendLogEntry, reading: CounterReading): number {
  return sinceMs(evidence, endOf(entry), reading);
}

/** What became known of a POST, in the order of the books, and when (UTC ms by this machine); and when it was sent. */
type Happening = Pick<SpendLogEntry, "sentAt"> & { seq: number; at: number | null };

function endOf({ endedSeq, endedAt, sentAt }: SpendLogEntry): Happening {
  return { seq: endedSeq ?? Number.POSITIVE_INFINITY, at: endedAt, sentAt };
}

function lookOf({ lookedSeq, lookedAt, sentAt }: SpendLogEntry): Happening {
  return { seq: lookedSeq, at: lookedAt, sentAt };
}

/**
 * How long after an event of the books a reading was taken, in ms; the least, where this machine's clock was set in
 * between. 0 where the event came after it.
 */
function sinceMs({ baseline, readings }: ChargeEvidence, event: Happening, reading: CounterReading): number {
  if (event.seq > reading.seq) return 0;
  const until = [baseline, ...readings].filter(({ seq }) => seq <= reading.seq);
  const offsets = until.map((each) => servedAt(each) - each.at);
  const isSteady = Math.max(...offsets) - Math.min(...offsets) <= skewMs;
  const since = (other: CounterReading | undefined) => (other ? servedAt(reading) - servedAt(other) : null);
  // What is certain is the service's time since the first reading that came after.
  const least = since(until.find(({ seq }) => seq > event.seq) ?? reading) ?? 0;
  const sinceSent = servedAt(reading) - event.sentAt;
  const most = Math.min(
    since(until.findLast(({ seq }) => seq < event.seq)) ?? Number.POSITIVE_INFINITY,
    // What was sent before a reading and seems to be later was sent while a clock was ahead, nobody knows when.
    sinceSent < -skewMs ? Number.POSITIVE_INFINITY : sinceSent,
  );
  if (!isSteady || event.at === null) return least;
  // The clock may have been wrong at the event alone: it lies after the sending, and between two readings or before the first.
  const ms = reading.at - event.at;
  return ms >= least - skewMs && ms <= most + skewMs ? ms : least;
}

/**
 * Requests that somebody else makes with a key show in the service's count: it grows by more than this machine can have
 * sent. Whether a count includes a request that is under way or was lost is not known, so between two readings the
 * request counts as ours in the later one; but once it can no longer arrive, it explains no later growth.
 */
export interface KeyRequests {
  /** Requests of the key, as the service counts them. */
  requests: number;
  /** Requests that this machine had sent with the key when the answer was there. */
  sent: number;
  /** Those of them that were over before the service was asked: answered, or lost so long ago that none arrives any more. */
  over: number;
}

/** A key before its first request. */
export const newKey: Pick<KeyRequests, "requests" | "over"> = { requests: 0, over: 0 };

/** How many requests the key has made, as the service told it; null where that is no count. */
export function requestsTold(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}

/** How many requests at least somebody else has made between two looks. */
export function foreignRequests(
  earlier: Pick<KeyRequests, "requests" | "over">,
  later: Pick<KeyRequests, "requests" | "sent">,
): number {
  return Math.max(0, later.requests - earlier.requests - (later.sent - earlier.over));
}
