import { dayMs } from "../quota/quota.js";
import { learn } from "./learn.js";
import {
  clarity,
  type Entry,
  type Evidence,
  elapsed,
  isAwaited,
  type Learned,
  lastServedAt,
  nothingLearned,
} from "./readings.js";
import { type Finding, judge, undecided } from "./verdict.js";

/**
 * What became of paid requests that nobody answered, judged from the key's counters.
 *
 * GET me tells how many credits and requests a key has used. A *reading* of it is taken only while no POST of the key
 * is under way in any process (a bracket). Between two readings the books explain a part of the growth; the rest, the
 * *residual*, is what unknown requests were charged. A zero residual proves that they were not, provided that nothing
 * else moves the counter. So a reading is *clear* only when the end of every task that was open at it is known, or nobody
 * has looked at it for as long as any task takes, and no failed task's credits may still have been on their way back; "not
 * charged" waits until the counter has matched the books exactly over requests that moved it; and nothing is inferred once
 * the key was used from elsewhere.
 *
 * How a failed task shows in the counter is not documented. Both ways are carried as hypotheses, `net` (its credits
 * are taken off again) and `gross` (they stay), until a clear reading contradicts one of them; a verdict needs all
 * that are left. Order is told by sequence numbers of the books, and time by the service's clock where it can be, so
 * that a clock that jumps moves no verdict.
 */
export interface Judgement extends Learned {
  verdicts: ({ entry: number } & Finding)[];
  /** The reading to begin from now on; null keeps the present one. */
  baseline: number | null;
  /** Unknown POSTs that are left without a verdict. */
  unsettled: number;
  /** When another reading could settle something (UTC ms by this machine); null when none could. */
  nextReadingAt: number | null;
  /** Entries at whose tasks somebody has to look before every reading is clear. */
  awaited: readonly number[];
}

/** Until a reading is tried again after one that came to nothing, in ms. */
const againMs = 60_000;

/** Judges what can be judged now. Pure. */
export function reconcile(evidence: Evidence): Judgement {
  const open = evidence.entries.filter((entry) => entry.outcome === "unknown" && entry.verdict === null);
  const facts = { ...evidence, ...learn(evidence) };
  const why = doubt(facts);
  const judged = open.flatMap((entry) => {
    const isFree = facts.settings.errorIsFree && entry.completeError;
    const found = isFree ? errorIsFree : why === null ? judge(facts, entry) : null;
    return found === null ? [] : [{ entry: entry.id, ...found }];
  });
  const decided = judged.filter(({ verdict }) => verdict !== "undecided");
  // What is known of one may explain what was open about the others.
  if (decided.length > 0) {
    const again = reconcile(withVerdicts(facts, decided));
    return { ...again, verdicts: [...decided, ...again.verdicts] };
  }
  // Whoever cannot be told from the others takes them along: the next baseline holds what each of them may have cost.
  const hopeless = why ?? judged[0]?.evidence;
  if (hopeless !== undefined) return giveUp(facts, open, hopeless);
  const last = facts.readings.findLast(
    (reading) => clarity(facts, reading) === "clear" && !isBetween(facts, reading),
  );
  return {
    ...learnedOf(facts),
    verdicts: [],
    baseline: open.length === 0 ? (last?.id ?? null) : null,
    ...outlook(facts, open),
  };
}

/** Whether a judgement says anything that the books do not hold yet. */
export function isNews(judgement: Judgement, known: Evidence): boolean {
  const { verdicts, hypotheses, trusted, foreignAt } = judgement;
  const baseline = judgement.baseline ?? known.baseline.id;
  const isLearned =
    hypotheses.join() !== known.hypotheses.join() ||
    trusted !== known.trusted ||
    foreignAt !== known.foreignAt;
  return verdicts.length > 0 || baseline !== known.baseline.id || isLearned;
}

function withVerdicts(facts: Evidence, verdicts: Judgement["verdicts"]): Evidence {
  const entries = facts.entries.map((entry) => {
    const found = verdicts.find((verdict) => verdict.entry === entry.id);
    return found ? { ...entry, verdict: found.verdict, verdictSeq: found.seq } : entry;
  });
  return { ...facts, entries };
}

const errorIsFree: Finding = {
  verdict: "not_charged",
  evidence: "a complete GENERATION_ERROR, which by the settings is not charged",
  seq: null,
};

/** Why nothing can be inferred at present; null when it can. */
function doubt(facts: Evidence): string | null {
  const { hypotheses, foreignAt, baseline } = facts;
  if (foreignAt !== null && Math.abs(lastServedAt(facts) - foreignAt) < dayMs) {
    return "the key was used from elsewhere, so its counters prove nothing";
  }
  if (hypotheses.length === 0) return "the key's counters do not match the books, so they prove nothing";
  // What came back after the baseline would hide a charge of the same amount.
  return clarity(facts, baseline) === "never"
    ? "the key's counters were read while credits of a failed task were on their way back"
    : null;
}

/**
 * Whether a charge that was found came after this reading though its POST was sent before it. To begin from there
 * would leave the charge without its POST, and blame it on the next one.
 */
function isBetween({ entries }: Evidence, { seq }: Evidence["baseline"]): boolean {
  return entries.some(
    ({ verdict, verdictSeq, intendedSeq }) =>
      verdict === "charged" && intendedSeq <= seq && (verdictSeq ?? 0) > seq,
  );
}

/** When nothing can be inferred from what was read so far, a person has to decide. */
function giveUp(facts: Evidence, open: readonly Entry[], why: string): Judgement {
  const last = facts.readings.at(-1);
  const lost = open.filter((entry) => entry.intendedSeq <= (last ?? facts.baseline).seq);
  const learned = learnedOf(facts);
  return {
    ...(facts.hypotheses.length > 0 ? learned : { ...nothingLearned, foreignAt: learned.foreignAt }),
    verdicts: [...lost.map((entry) => ({ entry: entry.id, ...undecided(why) }))],
    baseline: last?.id ?? null,
    ...outlook(
      facts,
      open.filter((entry) => !lost.includes(entry)),
    ),
  };
}

function learnedOf({ hypotheses, trusted, foreignAt }: Learned): Learned {
  return { hypotheses, trusted, foreignAt };
}

/** What is left open, and the first time at which a reading is wanted that has not been taken. */
function outlook(
  facts: Evidence,
  left: readonly Entry[],
): Pick<Judgement, "unsettled" | "nextReadingAt" | "awaited"> {
  const times = left.map((entry) => nextReading(facts, entry)).filter((at) => at !== null);
  const last = facts.readings.at(-1);
  const wasted = last !== undefined && clarity(facts, last) === "never" ? last.at + againMs : 0;
  return {
    unsettled: left.length,
    nextReadingAt: times.length === 0 ? null : Math.max(wasted, Math.min(...times)),
    awaited: facts.entries
      .filter((entry) => facts.readings.some((reading) => isAwaited(facts, entry, reading)))
      .map(({ id }) => id),
  };
}

/** Readings are wanted right after a POST was given up, then twice, and a day later. Null when all of them were taken. */
function nextReading(facts: Evidence, entry: Entry): number | null {
  const ended = entry.endedSeq ?? Number.POSITIVE_INFINITY;
  const after = facts.readings.filter((reading) => reading.seq > ended);
  const usable = after.filter((reading) => clarity(facts, reading) !== "never");
  const [first] = usable;
  if (!first) return Math.min(entry.endedAt ?? facts.now, facts.now);
  const [early, late] = facts.settings.settleMs;
  const since = (reading: Evidence["baseline"]) => elapsed(facts, entry, reading);
  // How long it has been is the service's to say: this machine's clock may have been set before the last reading.
  const last = after.at(-1) ?? first;
  const when = (ms: number) => last.at + ms - since(last);
  const taken = usable.find((reading) => since(reading) >= early);
  if (!taken) return when(early);
  const both = usable.some((reading) => reading !== taken && since(reading) >= late);
  if (!both) return when(late);
  return since(last) > dayMs ? null : when(dayMs + 1_000);
}
