import { type Credits, credits, minus, noCredits, plus, toNumber } from "../../src/core/money.js";
import type { Accounts } from "../../src/core/ports/accounts.js";
import type { Attempt, Intent } from "../../src/core/ports/attempt.js";
import type { Reply, Send } from "../../src/core/ports/send.js";
import type { BalanceMark, Bounds, SpendLog, TakenCredits } from "../../src/core/ports/spend-log.js";
import type { RunPorts } from "../../src/run/ports.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import type { Mutant } from "./mutants.js";
import type { Substitution } from "./runner.js";
import { keptOf, type Scenario } from "./scenario.js";

/** Runners that are broken where money is at stake. */
export const moneyMutants: readonly Mutant[] = [
  { name: "sends before the intent is committed", make: () => ofStore(intendLate) },
  {
    name: "writes no intent into the receipts",
    make: () => ({
      ports: (ports) => ({ ...ports, receipts: { ...ports.receipts, intent: async () => {} } }),
    }),
  },
  {
    name: "sends again after a timeout",
    make: () => sendsAgain((reply) => reply.kind === "no_answer" && reply.reason === "timeout"),
  },
  {
    name: "sends again after a reset",
    make: () => sendsAgain((reply) => reply.kind === "no_answer" && reply.reason !== "timeout"),
  },
  {
    name: "sends again after a 5xx",
    make: () => sendsAgain((reply) => reply.kind === "answer" && reply.status >= 500),
  },
  {
    name: "takes a reset for a request that was not sent",
    make: () => ({
      parts: (parts) => ({ ...parts, send: misread(parts.send) }),
    }),
  },
  {
    name: "submits an overdue item again",
    make: () =>
      ofStore((store) => ({
        ...store,
        apply: async (item, event, change) => {
          if (event !== "window_passed") return store.apply(item, event, change);
          await store.apply(item, "task_failed", { charged: noCredits });
          await store.apply(item, "retry", {});
        },
      })),
  },
  {
    name: "drops a task that answers 404",
    make: () => failsTask((outcome) => outcome.kind === "unclear" && outcome.missing),
  },
  {
    name: "drops a task that answers 5xx",
    make: () => failsTask((outcome) => outcome.kind === "unclear" && outcome.reached && !outcome.missing),
  },
  {
    name: "takes what a crash cut off for not sent",
    make: () =>
      ofStore((store) => ({
        ...store,
        conclude: (attempt, event, outcome) => {
          const isCutOff = outcome.message === "the process ended before the answer was read";
          return store.conclude(attempt, isCutOff ? "not_sent" : event, outcome);
        },
        apply: async (item, event, change) => {
          if (event !== "undecided" || (await store.item(item)).state === "unknown")
            await store.apply(item, event, change);
        },
      })),
  },
  {
    name: "overlooks what a crash cut off",
    make: () => ofStore((store) => ({ ...store, interrupted: async () => [] })),
  },
  {
    name: "takes an unreadable answer for a refusal",
    make: () => ({
      service: (service) => ({
        ...service,
        generate: async (body, ticket, repeatKey) => {
          const outcome = await service.generate(body, ticket, repeatKey);
          if (outcome.kind !== "unknown" || outcome.status !== 200) return outcome;
          return { kind: "refused", status: 429, stop: "pause", isStated: true, code: null, message: null };
        },
      }),
    }),
  },
  {
    name: "takes 402 for a failure of the item",
    make: () => ({
      service: (service) => ({
        ...service,
        generate: async (body, ticket, repeatKey) => {
          const outcome = await service.generate(body, ticket, repeatKey);
          return outcome.kind === "refused" && outcome.status === 402
            ? { ...outcome, kind: "rejected", status: 400 }
            : outcome;
        },
      }),
    }),
  },
  {
    name: "forgets that failed tasks cost nothing",
    make: () =>
      ofStore((store) => ({
        ...store,
        apply: async (item, event, change) => {
          const { price } = await store.item(item);
          return store.apply(item, event, event === "task_failed" ? { ...change, charged: price } : change);
        },
      })),
  },
  {
    name: "tells half of what an output has cost",
    make: () => ({
      service: (service) => ({
        ...service,
        task: async (id, ticket) => {
          const outcome = await service.task(id, ticket);
          return outcome.kind === "completed" && outcome.charged !== null
            ? { ...outcome, charged: credits(toNumber(outcome.charged) / 2) }
            : outcome;
        },
      }),
    }),
  },
  {
    name: "leaves what is in flight out of the cap",
    make: () =>
      ofStore((store) => ({
        ...store,
        spending: async (run, of) => ({ ...(await store.spending(run, of)), pending: credits(0) }),
      })),
  },
  {
    name: "forgets under the cap what is about to be submitted",
    make: () =>
      ofStore((store) => ({
        ...store,
        spending: (run, of) => store.spending(run, of?.model === undefined ? {} : { model: of.model }),
      })),
  },
  {
    name: "overlooks the cap of a model",
    matters: ({ modelCap }) => modelCap !== undefined,
    make: () => ({ settings: (settings) => ({ ...settings, modelCaps: new Map() }) }),
  },
  {
    name: "forgets what the day has cost",
    matters: ({ dailyCredits }) => dailyCredits !== undefined,
    make: () => ({
      ports: (ports) => ({
        ...ports,
        accounts: { ...ports.accounts, spentOn: async () => noCredits },
        spendLog: within(ports.spendLog, (bounds) => ({ ...bounds, daily: null })),
      }),
    }),
  },
  {
    name: "overlooks the balance that must be left",
    matters: keepsCredits,
    make: () => ({ settings: (settings) => ({ ...settings, keep: null }) }),
  },
  {
    name: "leaves more of the balance than it must",
    matters: keepsCredits,
    make: () => taking(({ since, before }) => ({ since: plus(since, credits(20)), before })),
  },
  {
    name: "counts what had been spent before the balance was read",
    matters: keepsCredits,
    make: () =>
      taking(
        (taken) => taken,
        (mark) => ({ ...mark, seq: 0 }),
      ),
  },
  {
    name: "keeps nothing back for what may yet be charged",
    matters: keepsCredits,
    make: () => taking(({ since }) => ({ since, before: noCredits })),
  },
  {
    name: "overlooks what another workspace takes from the balance",
    matters: (scenario) => keepsCredits(scenario) && scenario.workspaces > 1,
    make: () => ({
      ports: (ports) => {
        const { accounts, spendLog } = ports;
        return {
          ...ports,
          accounts: { ...accounts, takenFrom: ownTakings(ports) },
          spendLog: within(spendLog, looksOnly),
        };
      },
    }),
  },
  {
    name: "forgets what it has paid again",
    matters: ({ orphanCredits }) => orphanCredits !== undefined,
    make: () => ofStore((store) => ({ ...store, resubmitted: async () => noCredits })),
  },
  {
    name: "has as many lanes as it likes",
    make: () => ({
      settings: (settings) => ({ ...settings, lanes: 12 }),
      ports: (ports) => ({ ...ports, lanes: { ...ports.lanes, take: () => ({ release: () => {} }) } }),
    }),
  },
];

function ofStore(change: (store: Store) => Store): Substitution {
  return { parts: (parts) => ({ ...parts, store: change(parts.store) }) };
}

/** What a workspace alone has spent since the balance was read, by its own database. */
function ownTakings({ store, accounts }: RunPorts): Accounts["takenFrom"] {
  const spent = async () => {
    const spendings = await Promise.all((await store.runs()).map(({ id }) => store.spending(id)));
    return spendings.reduce((sum, { charged, pending }) => plus(sum, plus(charged, pending)), noCredits);
  };
  let read: { seq: number; spent: Credits } | null = null;
  return async (accountId, mark) => {
    if (read?.seq !== mark.seq) read = { seq: mark.seq, spent: await spent() };
    const { before } = await accounts.takenFrom(accountId, mark);
    return { since: minus(await spent(), read.spent), before };
  };
}

/** The spend log with other bounds than it is asked to keep. */
function within(spendLog: SpendLog, change: (bounds: Bounds) => Bounds): SpendLog {
  return { ...spendLog, intendWithin: (bounds, intent) => spendLog.intendWithin(change(bounds), intent) };
}

function looksOnly(bounds: Bounds): Bounds {
  return { ...bounds, kept: null };
}

function keepsCredits(scenario: Scenario): boolean {
  return keptOf(scenario) !== null;
}

/** Reckons otherwise what was taken from a balance, or since when. */
function taking(
  change: (taken: TakenCredits) => TakenCredits,
  since: (mark: BalanceMark) => BalanceMark = (mark) => mark,
): Substitution {
  return {
    ports: (ports) => {
      const { accounts, spendLog } = ports;
      const takenFrom: Accounts["takenFrom"] = async (accountId, mark) =>
        change(await accounts.takenFrom(accountId, since(mark)));
      return { ...ports, accounts: { ...accounts, takenFrom }, spendLog: within(spendLog, looksOnly) };
    },
  };
}

function sendsAgain(when: (reply: Reply) => boolean): Substitution {
  const again = (send: Send): Send => {
    return async (request, signal) => {
      const reply = await send(request, signal);
      return request.method === "POST" && when(reply) ? send(request, signal) : reply;
    };
  };
  return { parts: (parts) => ({ ...parts, send: again(parts.send) }) };
}

function misread(send: Send): Send {
  return async (request, signal) => {
    const reply = await send(request, signal);
    return reply.kind === "no_answer" && reply.reason.includes("RESET")
      ? { kind: "not_sent", reason: reply.reason }
      : reply;
  };
}

type TaskOutcome = Awaited<ReturnType<Parameters<NonNullable<Substitution["service"]>>[0]["task"]>>;

function failsTask(when: (outcome: TaskOutcome) => boolean): Substitution {
  return {
    service: (service) => ({
      ...service,
      task: async (taskId, ticket) => {
        const outcome = await service.task(taskId, ticket);
        if (!when(outcome)) return outcome;
        return { kind: "failed", message: "provider error", charged: noCredits, completedAt: null };
      },
    }),
  };
}

/** The attempt is only made up, and committed with the answer. */
function intendLate(store: Store): Store {
  const waiting = new Map<number, { item: number; intent: Intent }>();
  return {
    ...store,
    intend: async (item, intent) => {
      const number = ((await store.attempt(item))?.number ?? 0) + 1;
      const id = -1 - waiting.size;
      waiting.set(id, { item, intent });
      return { id, itemId: item, number, intendedAt: 0 } as Attempt;
    },
    conclude: async (id, event, outcome) => {
      const late = waiting.get(id);
      const attempt = late === undefined ? id : (await store.intend(late.item, late.intent)).id;
      return store.conclude(attempt, event, outcome);
    },
  };
}
