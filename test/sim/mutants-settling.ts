import type { Accounts } from "../../src/store/accounts/accounts.js";
import type { SpendLog } from "../../src/store/accounts/spend-log.js";
import type { Mutant } from "./mutants.js";
import type { Substitution, Swap } from "./runner.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where they find out what became of an unanswered paid request. */
export const settlingMutants: readonly Mutant[] = [
  {
    name: "settles too early",
    settings: ({ settling }) => ({ settling: { ...settling, settleMs: [500, 1_000] } }),
  },
  {
    name: "overlooks that the key is used from elsewhere",
    stage: explainable,
    spendLog: ofEvidence(({ baseline, readings }) => {
      const own = (over: number) => baseline.requests + over - baseline.over;
      return {
        foreignAt: null,
        readings: readings.map((reading) => ({ ...reading, requests: own(reading.over) })),
      };
    }),
  },
  {
    name: "lets every request that was ever lost explain what others do with the key",
    stage: explainable,
    make: explainingAll,
  },
  {
    name: "takes it for granted that a failed task's credits come back",
    spendLog: ofEvidence(() => ({ hypotheses: ["net"], trusted: true })),
  },
  {
    name: "takes any gateway's 5xx for the service's own word",
    spendLog: ({ answered }) => ({
      answered: (entry, answer) =>
        answered(entry, answer.outcome === "unknown" ? { ...answer, completeError: true } : answer),
    }),
    settings: ({ settling }) => ({ settling: { ...settling, errorIsFree: true } }),
  },
  {
    name: "settles an unanswered request as not charged at once",
    spendLog: (spendLog) => ({
      entry: async (entry) => {
        const found = await spendLog.entry(entry);
        return found && { ...found, verdict: found.verdict ?? "not_charged" };
      },
    }),
  },
  {
    name: "says of every unanswered request that it was charged",
    spendLog: (spendLog) => ({
      entry: async (entry) => {
        const found = await spendLog.entry(entry);
        return found?.verdict === "not_charged" ? { ...found, verdict: "charged" } : found;
      },
    }),
  },
];

type Evidence = NonNullable<Awaited<ReturnType<SpendLog["evidence"]>>>;

/**
 * Several requests are lost, and somebody else makes fewer with the key, soon after and at the price of each item: a charge
 * that a lost request may seem to explain. The run stays until all are settled.
 */
function explainable(scenario: Scenario): Scenario {
  const { seed, items, switches } = scenario;
  const lost = [1, 2, 3, 4, 5].map((nth) => ({
    at: "request" as const,
    endpoint: "generate" as const,
    nth,
    fault: { kind: "lost-request" as const },
  }));
  const other = { kind: "foreign-writer" as const, posts: 1 + (seed % 2), sameKey: true };
  return {
    ...scenario,
    settle: "wait",
    switches: { ...switches, requestsCount: "all" },
    items: items.slice(0, 8).map((item) => ({ ...item, model: "sketch" })),
    faults: [...lost, { at: "time", ms: 500 * (1 + (seed % 60)), fault: other }],
  };
}

function ofEvidence(change: (evidence: Evidence) => Partial<Evidence>): Swap<SpendLog> {
  return (spendLog) => ({
    evidence: async (settings) => {
      const evidence = await spendLog.evidence(settings);
      return evidence && { ...evidence, ...change(evidence) };
    },
  });
}

function explainingAll(): Substitution {
  let unanswered = 0;
  const lax = <Of extends { over: number }>(reading: Of) => ({ ...reading, over: reading.over - unanswered });
  return {
    accounts: counting((change) => (unanswered += change)),
    spendLog: ofEvidence(({ baseline, readings }) => ({
      baseline: lax(baseline),
      readings: readings.map(lax),
    })),
  };
}

/** Tells of each request that leaves or is answered how many more are without an answer. */
function counting(tell: (change: 1 | -1) => void): Swap<Accounts> {
  return ({ reserve, answered, release }) => ({
    reserve: async (...asked) => {
      const reservation = await reserve(...asked);
      if (reservation.ticket !== null) tell(1);
      return reservation;
    },
    answered: async (...ticket) => {
      tell(-1);
      await answered(...ticket);
    },
    release: async (ticket) => {
      tell(-1);
      await release(ticket);
    },
  });
}
