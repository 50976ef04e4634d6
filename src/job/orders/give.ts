import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { isRunOrder, type Order, type OrderOutcome } from "../../core/ports/orders.js";
import type { Run, Store } from "../../core/ports/store.js";
import { takeLock } from "../../store/lock.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { mustHaveRuns } from "../workspace/history.js";
import { type Holder, holderOf, noteHolder } from "../workspace/holder.js";
import type { WorkspaceSession } from "../workspace/open.js";
import type { Workspace } from "../workspace/workspace.js";
import { applyRunOrder, orderItems, pricesNow } from "./attend.js";
import {
  agreedTo,
  type FindItems,
  factsFor,
  type ItemRequest,
  needsFacts,
  type PriceConsent,
} from "./request.js";

export interface GiveOptions {
  workspace: Workspace;
  clock: Clock;
  signal: AbortSignal;
  /** Told when the process at work takes its time. */
  onSlow(message: string): void;
}

/** Finds the run that is meant, and what is wanted of it; asked again when the process at work ends meanwhile. */
export type WantedOrder = (store: Store, holder: Holder | null) => Promise<{ run: Run; order: Order }>;

export interface Carried extends OrderOutcome {
  run: Run;
  order: Order;
  /** The process that carried it out; null when it was this one. */
  by: Holder | null;
}

/** Milliseconds between two looks whether an order was carried out. */
const lookMs = 100;
/** DuePolls after which it is seen whether the process at work is still there, and after which it is slow. */
const freeLooks = 5;
const slowLooks = 50;

/**
 * Has an order carried out: by the process that holds the workspace, within a second; where there is none, `here`, which
 * is null when another process has come in between. Throws EarlyExit where there is nothing to give an order for, or
 * when it is interrupted: then the order is taken back.
 */
export async function giveOrder<Here>(
  options: GiveOptions,
  wanted: WantedOrder,
  here: () => Promise<Here | null>,
): Promise<Here | Carried> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  for (;;) {
    const carried = (await here()) ?? (await handedOver(options, wanted));
    if (carried) return carried;
    await clock.sleep(lookMs, options.signal);
  }
}

/** Carries out what needs no service. Null when another process holds the workspace. */
export async function carriedOutHere(
  { workspace, clock }: Pick<GiveOptions, "workspace" | "clock">,
  wanted: WantedOrder,
  lock = takeLock(workspace.lockFile),
): Promise<Carried | null> {
  if (!lock) return null;
  const note = noteHolder(workspace.lockFile, clock);
  try {
    return await withStore(workspace, clock, async (store) => {
      const { run, order } = await wanted(store, null);
      return { ...(await outcomeHere(store, clock, run, order)), run, order, by: null };
    });
  } finally {
    note.remove();
    lock.release();
  }
}

async function outcomeHere(store: Store, clock: Clock, run: Run, order: Order): Promise<OrderOutcome> {
  if (isRunOrder(order)) return applyRunOrder({ store, clock, atWork: null }, run, order);
  const { done } = await orderItems({ store, books: null, facts: {}, charges: new Map() }, run, order);
  return { kind: "done", message: done };
}

/** Null when the process that was at work ended without it. */
async function handedOver(options: GiveOptions, wanted: WantedOrder): Promise<Carried | null> {
  const { workspace, clock, signal, onSlow } = options;
  return withStore(workspace, clock, async (store) => {
    const by = holderOf(workspace.lockFile);
    const { run, order } = await wanted(store, by);
    const id = await store.give(run.id, order);
    for (let looks = 1; ; looks++) {
      const outcome = await store.outcomeOf(id);
      if (outcome) return outcome.kind === "void" ? null : { ...outcome, run, order, by };
      if (signal.aborted && (await store.withdraw(id))) {
        throw new EarlyExit("interrupted", `interrupted; the order to ${order.do} is taken back`);
      }
      if (looks % freeLooks === 0 && isFree(workspace) && (await store.withdraw(id))) return null;
      if (looks === slowLooks)
        onSlow("the process at work has not taken the order yet; Ctrl-C takes it back");
      await clock.sleep(lookMs, signal);
    }
  });
}

function isFree({ lockFile }: Workspace): boolean {
  const lock = takeLock(lockFile);
  lock?.release();
  return lock !== null;
}

async function withStore<Result>(
  workspace: Workspace,
  clock: Clock,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  const store = openWorkspace(workspace, clock);
  try {
    return await use(store);
  } finally {
    store.close();
  }
}

/** Does what is wanted in this process, and lets its run go on with it. */
export function continuationOf(wish: FindItems, consent: PriceConsent): Continuation {
  let wanted: ItemRequest | null = null;
  return {
    async choose(store) {
      wanted = await wish(store);
      return wanted.run;
    },
    async change({ store, account }) {
      if (!wanted) throw new Error("a wish that was never found");
      const { run, order, offered } = wanted;
      const facts = await factsFor(order, account);
      const charges = await account.accounts.highestCharges(account.accountId());
      const agreed = await agreedTo(order, pricesNow(offered, facts, charges), consent);
      const { run: changed } = await orderItems({ store, books: account.books, facts, charges }, run, agreed);
      return { ...changed, requests: changed.requests + (needsFacts(order) ? 1 : 0) };
    },
  };
}

/** What resume, retry and redo have in common: they go on with a run that is there, and read no manifest. */
export interface Continuation {
  /** Finds the run, before anything is locked or asked. Throws EarlyExit where there is none. */
  choose(store: Store): Promise<Run>;
  /** What changes before it goes on, with the workspace held and the account known; returns the run to carry on. */
  change?(hold: WorkspaceSession, run: Run): Promise<Run>;
}
