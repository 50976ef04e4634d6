import { type Credits, inCredits, plus, showCredits } from "../money.js";
import { dayMs } from "../quota/quota.js";
import { composedMax, isComposed, subsets } from "./composition.js";
import {
  candidates,
  clarity,
  type Entry,
  type Evidence,
  elapsed,
  lostTasks,
  type Reading,
  residual,
  servedAt,
  type Verdict,
} from "./readings.js";

export interface Finding {
  verdict: Verdict;
  /** In words. */
  evidence: string;
  /** For a charge, the place in the books of the reading that shows it; null for the other verdicts. */
  seq: number | null;
}

/** A verdict on one unknown POST. Null while there is none. */
export function judge(facts: Evidence, entry: Entry): Finding | null {
  if (entry.intendedSeq <= facts.baseline.seq) {
    return undecided(unreadBefore);
  }
  const ended = entry.endedSeq ?? Number.POSITIVE_INFINITY;
  const after = facts.readings.filter((reading) => reading.seq > ended);
  const clear = after.filter((reading) => clarity(facts, reading) === "clear");
  const charge = after.find(
    (reading) =>
      isBeyond(facts, reading, entry) || (clear.includes(reading) && chargedIn(facts, reading, entry)),
  );
  if (charge)
    return {
      verdict: "charged",
      evidence: shareText(facts, charge, showCredits(entry.price)),
      seq: charge.seq,
    };
  const proof = zeroProof(facts, clear, entry);
  if (proof !== null) return { verdict: "not_charged", evidence: proof, seq: null };
  const why = hopeless(facts, clear, entry);
  return why === null ? null : undecided(why);
}

/** Of a POST that no reading came before. */
export const unreadBefore = "the key's counters were not read before it was sent";

export function undecided(evidence: string): Finding {
  return { verdict: "undecided", evidence, seq: null };
}

/** Two clear readings without a charge, late enough; one suffices where the service itself said that it failed. */
function zeroProof(facts: Evidence, clear: readonly Reading[], entry: Entry): string | null {
  if (!facts.trusted) return null;
  const zeros = clear.filter((reading) => chargedIn(facts, reading, entry) === false);
  const since = (reading: Reading) => elapsed(facts, entry, reading);
  const [first, second] = facts.settings.settleMs;
  const late = zeros.findLast((reading) => since(reading) >= second);
  const early = zeros.find((reading) => reading !== late && since(reading) >= first);
  const proof = late && early ? late : entry.completeError ? zeros[0] : undefined;
  return proof ? shareText(facts, proof, "none") : null;
}

/** Why no later reading would tell more; null when one may. */
function hopeless(facts: Evidence, clear: readonly Reading[], entry: Entry): string | null {
  const [, second] = facts.settings.settleMs;
  const late = clear.find((reading) => elapsed(facts, entry, reading) >= second);
  if (late && !facts.trusted) return "the key's counters have not been seen to match the books yet";
  if (late && chargedIn(facts, late, entry) === null) {
    if (lostTasks(facts, late).length > 0)
      return "credits of a lost task may have come back meanwhile, so the key's counters do not tell";
    const possible = candidates(facts, late).length;
    return possible === 1
      ? `${grownText(facts, late)}, which is not its price`
      : `${grownText(facts, late)}, and its counters do not tell for which of ${possible} unanswered requests`;
  }
  const last = facts.readings.findLast(({ seq }) => seq > (entry.endedSeq ?? Number.POSITIVE_INFINITY));
  return last && elapsed(facts, entry, last) > dayMs
    ? "the key's counters could not be read clearly within a day"
    : null;
}

/**
 * Whether one unknown POST was charged by the time of a reading: true or false when every hypothesis and every way to
 * compose its residual of the candidates' prices agree, else null.
 */
function chargedIn(facts: Evidence, reading: Reading, entry: Entry): boolean | null {
  // What was charged by then at a price that nobody knows is in every later residual too.
  const before = facts.readings.filter(({ seq }) => seq < reading.seq);
  if (before.some((earlier) => clarity(facts, earlier) === "clear" && isUnexplained(facts, earlier)))
    return null;
  const possible = candidates(facts, reading);
  const answers = new Set<boolean | null>();
  for (const hypothesis of facts.hypotheses) {
    const returned = hypothesis === "net" ? lostTasks(facts, reading) : [];
    if (possible.length + returned.length > composedMax) return null;
    const rest = residual(facts, reading, hypothesis);
    if (mayBeSurprise(facts, rest, possible, returned)) return null;
    const ways = waysOf(rest, possible, returned);
    if (ways.length === 0) answers.add(null);
    for (const some of ways) answers.add(some.includes(entry));
  }
  const [answer = null] = answers;
  return answers.size === 1 ? answer : null;
}

/** Whether no hypothesis finds a residual among the prices of those whose charge it may hold. */
function isUnexplained(facts: Evidence, reading: Reading): boolean {
  const possible = candidates(facts, reading);
  return facts.hypotheses.every((hypothesis) => {
    const returned = hypothesis === "net" ? lostTasks(facts, reading) : [];
    const isCountable = possible.length + returned.length <= composedMax;
    return isCountable && waysOf(residual(facts, reading, hypothesis), possible, returned).length === 0;
  });
}

/** Whose charges a residual may be made up of. */
function waysOf(rest: Credits, possible: readonly Entry[], returned: readonly Entry[]): Entry[][] {
  return subsets(possible).filter((some) => isComposed(rest, some, returned));
}

/**
 * Whether a residual may hold a charge other than was booked: what a request that was booked at the same price turned
 * out to cost. A price changes between two requests, and the one that was lost may have been the second.
 */
function mayBeSurprise(
  { entries }: Evidence,
  rest: Credits,
  possible: readonly Entry[],
  returned: readonly Entry[],
): boolean {
  const surprises = possible.flatMap((entry) =>
    [...surprisesAt(entries, entry.price)].map((price) => ({ entry, price })),
  );
  if (surprises.length === 0) return false;
  if (possible.length + returned.length + surprises.length > composedMax) return true;
  return subsets(surprises).some((odd) => {
    const others = possible.filter((entry) => !odd.some((one) => one.entry === entry));
    return odd.length > 0 && subsets(others).some((some) => isComposed(rest, [...odd, ...some], returned));
  });
}

/** What requests were charged that were booked at this price, where it was another. */
function surprisesAt(entries: readonly Entry[], price: Credits): Set<Credits> {
  const charges = entries.filter((entry) => entry.price === price).map(({ charged }) => charged ?? price);
  return new Set(charges.filter((charge) => charge !== price));
}

/**
 * Whether the key was charged more than all other unknown POSTs can have cost. What is still to come, the end of open
 * tasks, can only lower the counter, so this is for readings that wait for it.
 */
function isBeyond(facts: Evidence, reading: Reading, entry: Entry): boolean {
  if (clarity(facts, reading) !== "pending") return false;
  const possible = candidates(facts, reading);
  // Of one that nobody has spoken of yet, not even the price is certain.
  if (possible.some(({ outcome }) => outcome === null)) return false;
  if (possible.some(({ price }) => surprisesAt(facts.entries, price).size > 0)) return false;
  const others = plus(...possible.filter((other) => other !== entry).map((other) => other.price));
  return facts.hypotheses.every((hypothesis) => {
    const rest = residual(facts, reading, hypothesis);
    return rest > others && rest <= plus(others, entry.price) && isOfPrices(rest, possible);
  });
}

/** Whether an amount leaves no doubt that requests cost what was booked: of several, one may have been charged another price. */
function isOfPrices(amount: Credits, possible: readonly Entry[]): boolean {
  if (possible.length === 1) return true;
  return possible.length <= composedMax && subsets(possible).some((some) => isComposed(amount, some, []));
}

/** What the key was charged by then, and which share of it was for this one where it may have been for several. */
function shareText(facts: Evidence, reading: Reading, share: string): string {
  const grown = grownText(facts, reading);
  const possible = candidates(facts, reading).length;
  return possible === 1
    ? grown
    : `${grown}, ${share} of them for this one of ${possible} unanswered requests`;
}

function grownText(facts: Evidence, reading: Reading): string {
  const [hypothesis = "net"] = facts.hypotheses;
  const rest = inCredits(residual(facts, reading, hypothesis));
  return `${timeText(reading)}: the key was charged ${rest} that the books do not explain`;
}

function timeText(reading: Reading): string {
  return `read ${new Date(servedAt(reading)).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
