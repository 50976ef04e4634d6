import type { Service } from "../../src/client/service.js";
import { type Credits, credits, minus, noCredits, plus, toNumber } from "../../src/core/money.js";
import type { Attempt, Intent } from "../../src/core/ports/attempt.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { Bounds, TakenCredits } from "../../src/core/ports/spend-log.js";
import type { Accounts } from "../../src/store/accounts/accounts.js";
import type { SpendLog } from "../../src/store/accounts/spend-log.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import type { Mutant } from "./mutants.js";
import type { Parts, Swap } from "./runner.js";
import { keptOf, type Scenario } from "./scenario.js";

/** Runners that are broken where money is at stake. */
export const moneyMutants: readonly Mutant[] = [
  { name: "sends before the intent is committed", store: intendLate },
  { name: "writes no intent into the receipts", receipts: { intent: async () => {} } },
  {
    name: "sends again after a timeout",
    parts: sendingAgain((reply) => reply.kind === "no_answer" && reply.reason === "timeout"),
  },
  {
    name: "sends again after a reset",
    parts: sendingAgain((reply) => reply.kind === "no_answer" && reply.reason !== "timeout"),
  },
  {
    name: "sends again after a 5xx",
    parts: sendingAgain((reply) => reply.kind === "answer" && reply.status >= 500),
  },
  {
    name: "repeats a request under another key",
    stage: (scenario) => ({ ...scenario, repeats: true }),
    make: () => {
      let sent = 0;
      return {
        parts: ({ send }) => ({
          send: (request, signal) =>
            send(
              request.repeatKey === undefined ? request : { ...request, repeatKey: `key ${++sent}` },
              signal,
            ),
        }),
      };
    },
  },
  {
    name: "repeats requests to a service that does not know them",
    service: {
      announced: () => ({ repeatsMs: 86_400_000, inputs: false, cancel: false, providers: [], budget: null }),
    },
  },
  {
    name: "takes a reset for a request that was not sent",
    parts: ({ send }) => ({
      send: async (request, signal) => {
        const reply = await send(request, signal);
        return reply.kind === "no_answer" && reply.reason.includes("RESET")
          ? { kind: "not_sent", reason: reply.reason }
          : reply;
      },
    }),
  },
  {
    name: "submits an overdue item again",
    store: ({ apply }) => ({
      apply: async (item, event, change) => {
        if (event !== "window_passed") return apply(item, event, change);
        await apply(item, "task_failed", { charged: noCredits });
        await apply(item, "retry", {});
      },
    }),
  },
  {
    name: "drops a task that answers 404",
    service: failingTask((outcome) => outcome.kind === "unclear" && outcome.missing),
  },
  {
    name: "drops a task that answers 5xx",
    service: failingTask((outcome) => outcome.kind === "unclear" && outcome.reached && !outcome.missing),
  },
  { name: "takes what a crash cut off for not sent", store: cutOffForNotSent },
  { name: "overlooks what a crash cut off", store: { interrupted: async () => [] } },
  {
    name: "takes an unreadable answer for a refusal",
    service: (service) => ({
      generate: async (body, ticket, repeatKey) => {
        const outcome = await service.generate(body, ticket, repeatKey);
        if (outcome.kind !== "unknown" || outcome.status !== 200) return outcome;
        return { kind: "refused", status: 429, stop: "pause", isStated: true, code: null, message: null };
      },
    }),
  },
  {
    name: "takes 402 for a failure of the item",
    service: (service) => ({
      generate: async (body, ticket, repeatKey) => {
        const outcome = await service.generate(body, ticket, repeatKey);
        return outcome.kind === "refused" && outcome.status === 402
          ? { ...outcome, kind: "rejected", status: 400 }
          : outcome;
      },
    }),
  },
  {
    name: "forgets that failed tasks cost nothing",
    store: (store) => ({
      apply: async (item, event, change) => {
        const { price } = await store.item(item);
        return store.apply(item, event, event === "task_failed" ? { ...change, charged: price } : change);
      },
    }),
  },
  {
    name: "tells half of what an output has cost",
    service: (service) => ({
      task: async (id, ticket) => {
        const outcome = await service.task(id, ticket);
        return outcome.kind === "completed" && outcome.charged !== null
          ? { ...outcome, charged: credits(toNumber(outcome.charged) / 2) }
          : outcome;
      },
    }),
  },
  {
    name: "leaves what is in flight out of the cap",
    store: ({ spending }) => ({
      spending: async (run, of) => ({ ...(await spending(run, of)), pending: noCredits }),
    }),
  },
  {
    name: "forgets under the cap what is about to be submitted",
    store: ({ spending }) => ({
      spending: (run, of) => spending(run, of?.model === undefined ? {} : { model: of.model }),
    }),
  },
  {
    name: "overlooks the cap of a model",
    matters: ({ modelCap }) => modelCap !== undefined,
    settings: ({ run }) => ({ run: { ...run, options: { ...run.options, modelCaps: {} } } }),
  },
  {
    name: "forgets what the day has cost",
    matters: ({ dailyCredits }) => dailyCredits !== undefined,
    accounts: { spentOn: async () => noCredits },
    spendLog: within((bounds) => ({ ...bounds, daily: null })),
  },
  { name: "overlooks the balance that must be left", matters: keepsCredits, settings: { keep: null } },
  {
    name: "leaves more of the balance than it must",
    matters: keepsCredits,
    accounts: taking(({ since, before }) => ({ since: plus(since, credits(20)), before })),
    spendLog: within(looksOnly),
  },
  {
    name: "counts what had been spent before the balance was read",
    matters: keepsCredits,
    accounts: ({ takenFrom }) => ({ takenFrom: (account, mark) => takenFrom(account, { ...mark, seq: 0 }) }),
    spendLog: within(looksOnly),
  },
  {
    name: "keeps nothing back for what may yet be charged",
    matters: keepsCredits,
    accounts: taking(({ since }) => ({ since, before: noCredits })),
    spendLog: within(looksOnly),
  },
  {
    name: "overlooks what another workspace takes from the balance",
    matters: (scenario) => keepsCredits(scenario) && scenario.workspaces > 1,
    parts: (parts) => ({ accounts: { ...parts.accounts, takenFrom: ownTakings(parts) } }),
    spendLog: within(looksOnly),
  },
  {
    name: "forgets what it has paid again",
    matters: ({ orphanCredits }) => orphanCredits !== undefined,
    store: { resubmitted: async () => noCredits },
  },
  {
    name: "has as many lanes as it likes",
    settings: { lanes: 12 },
    lanes: { take: () => ({ release: () => {} }) },
  },
];

export function cutOffForNotSent(store: Store): Partial<Store> {
  return {
    conclude: (attempt, event, outcome) => {
      const isCutOff = outcome.message === "the process ended before the answer was read";
      return store.conclude(attempt, isCutOff ? "not_sent" : event, outcome);
    },
    apply: async (item, event, change) => {
      if (event !== "undecided" || (await store.item(item)).state === "unknown")
        await store.apply(item, event, change);
    },
  };
}

/** What a workspace alone has spent since the balance was read, by its own database. */
function ownTakings({ store, accounts }: Parts): Accounts["takenFrom"] {
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

/** The spend log keeps other bounds than it is asked to keep. */
function within(change: (bounds: Bounds) => Bounds): Swap<SpendLog> {
  return ({ intendWithin }) => ({ intendWithin: (bounds, intent) => intendWithin(change(bounds), intent) });
}

function looksOnly(bounds: Bounds): Bounds {
  return { ...bounds, kept: null };
}

function keepsCredits(scenario: Scenario): boolean {
  return keptOf(scenario) !== null;
}

/** Reckons otherwise what was taken from a balance. */
function taking(change: (taken: TakenCredits) => TakenCredits): Swap<Accounts> {
  return ({ takenFrom }) => ({ takenFrom: async (...asked) => change(await takenFrom(...asked)) });
}

function sendingAgain(when: (reply: Reply) => boolean): Swap<Parts> {
  return ({ send }) => ({
    send: async (request, signal) => {
      const reply = await send(request, signal);
      return request.method === "POST" && when(reply) ? send(request, signal) : reply;
    },
  });
}

type TaskOutcome = Awaited<ReturnType<Service["task"]>>;

function failingTask(when: (outcome: TaskOutcome) => boolean): Swap<Service> {
  return (service) => ({
    task: async (id, ticket) => {
      const outcome = await service.task(id, ticket);
      if (!when(outcome)) return outcome;
      return {
        kind: "failed",
        message: "provider error",
        charged: noCredits,
        completedAt: null,
        endedMs: null,
      };
    },
  });
}

/** The attempt is only made up, and committed with the answer. */
function intendLate(store: Store): Partial<Store> {
  const waiting = new Map<number, { item: number; intent: Intent }>();
  return {
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
