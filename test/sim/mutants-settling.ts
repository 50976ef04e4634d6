import type { Accounts } from "../../src/core/ports/accounts.js";
import type { SpendLog } from "../../src/core/ports/spend-log.js";
import type { Mutant } from "./mutants.js";
import type { Substitution } from "./runner.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where they find out what became of an unanswered paid request. */
export const settlingMutants: readonly Mutant[] = [
  {
    name: "settles too early",
    make: () => ({
      settings: (settings) => ({ ...settings, settling: { ...settings.settling, settleMs: [500, 1_000] } }),
    }),
  },
  {
    name: "overlooks that the key is used from elsewhere",
    stage: explainable,
    make: () =>
      ofEvidence((evidence) => {
        const { baseline, readings } = evidence;
        const own = readings.map((reading) => ({
          ...reading,
          requests: baseline.requests + reading.over - baseline.over,
        }));
        return { ...evidence, foreignAt: null, readings: own };
      }),
  },
  {
    name: "lets every request that was ever lost explain what others do with the key",
    stage: explainable,
    make: () => {
      let unanswered = 0;
      return {
        parts: (parts) => ({
          ...parts,
          accounts: counting(parts.accounts, (change) => (unanswered += change)),
        }),
        ...ofEvidence((evidence) => {
          const lax = <Of extends { over: number }>(reading: Of) => ({
            ...reading,
            over: reading.over - unanswered,
          });
          return { ...evidence, baseline: lax(evidence.baseline), readings: evidence.readings.map(lax) };
        }),
      };
    },
  },
  {
    name: "takes it for granted that a failed task's credits come back",
    make: () => ofEvidence((evidence) => ({ ...evidence, hypotheses: ["net"], trusted: true })),
  },
  {
    name: "takes any gateway's 5xx for the service's own word",
    make: () => ({
      ports: (ports) => ({
        ...ports,
        spendLog: {
          ...ports.spendLog,
          answered: (entry, answer) =>
            ports.spendLog.answered(
              entry,
              answer.outcome === "unknown" ? { ...answer, completeError: true } : answer,
            ),
        },
      }),
      settings: (settings) => ({ ...settings, settling: { ...settings.settling, errorIsFree: true } }),
    }),
  },
  {
    name: "settles an unanswered request as not charged at once",
    make: () =>
      ofSpendLog((spendLog) => ({
        ...spendLog,
        entry: async (entry) => {
          const found = await spendLog.entry(entry);
          return found && { ...found, verdict: found.verdict ?? "not_charged" };
        },
      })),
  },
  {
    name: "says of every unanswered request that it was charged",
    make: () =>
      ofSpendLog((spendLog) => ({
        ...spendLog,
        entry: async (entry) => {
          const found = await spendLog.entry(entry);
          return found?.verdict === "not_charged" ? { ...found, verdict: "charged" } : found;
        },
      })),
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

/** Tells of each request that leaves or is answered how many more are without an answer. */
function counting(accounts: Accounts, tell: (change: 1 | -1) => void): Accounts {
  return {
    ...accounts,
    reserve: async (...asked) => {
      const reservation = await accounts.reserve(...asked);
      if (reservation.ticket !== null) tell(1);
      return reservation;
    },
    answered: async (...ticket) => {
      tell(-1);
      await accounts.answered(...ticket);
    },
    release: async (ticket) => {
      tell(-1);
      await accounts.release(ticket);
    },
  };
}

function ofEvidence(change: (evidence: Evidence) => Evidence): Substitution {
  return ofSpendLog((spendLog) => ({
    ...spendLog,
    evidence: async (settings) => {
      const evidence = await spendLog.evidence(settings);
      return evidence && change(evidence);
    },
  }));
}

function ofSpendLog(change: (spendLog: SpendLog) => SpendLog): Substitution {
  return { ports: (ports) => ({ ...ports, spendLog: change(ports.spendLog) }) };
}
