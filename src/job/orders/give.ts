import { nodeDisk } from "../../archive/disk/node-disk.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { type RunOptions, withoutPastEnd } from "../../core/next/options.js";
import { isRunOrder, type Order, type OrderOutcome } from "../../core/ports/orders.js";
import type { Run } from "../../core/ports/store.js";
import { openReceipts } from "../../run/receipts/receipts.js";
import type { Store } from "../../store/workspace/workspace.js";
import { resumeCommand } from "../../workspace/find-run.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { capNeeded } from "../../workspace/left-to-do.js";
import { type LockOwner, lockOwnerOf, takeWorkspaceLock, type WorkspaceLock } from "../../workspace/lock.js";
import type { WorkspaceSession } from "../../workspace/open.js";
import { withStore } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";
import { type AppliedOrder, applyRunOrder, checkedOrder, checkRedo, leaveOpen, pricesNow } from "./apply.js";
import { factsFor, needsFacts } from "./facts.js";
import { promptNote } from "./redo.js";
import { agreedTo, type FindItems, type ItemRequest, type PriceConsent, plannedRest } from "./request.js";

export interface GiveOptions {
  workspace: Workspace;
  clock: Clock;
  signal: AbortSignal;
  /** Called when the running process does not respond. */
  onSlow(message: string): void;
}

/**
 * Finds the run and the order for it; called again if the running process ends in the meantime, and after a while if it
 * returns null: the process that has the lock has not begun its run.
 */
export type WantedOrder = (
  store: Store,
  lockOwner: LockOwner | null,
) => Promise<{ run: Run; order: Order } | null>;

export interface Carried extends OrderOutcome {
  run: Run;
  order: Order;
  /** The process that applied it; null for this process. */
  by: LockOwner | null;
}

/** Milliseconds between two checks whether an order was applied. */
const pollMs = 100;
/** Reads of the outcome after which the running process is looked up again, and after which it counts as slow. */
const ownerReads = 5;
const slowReads = 50;

/**
 * Has an order applied by the process that has the workspace's lock, within a second; if there is none, by `here`,
 * which returns null when another process took the lock first. Throws EarlyExit when there is nothing to order, or when
 * interrupted: then the order is withdrawn.
 */
export async function giveOrder<Here>(
  options: GiveOptions,
  wanted: WantedOrder,
  here: () => Promise<Here | null>,
): Promise<Here | Carried> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  for (let tries = 1; ; tries++) {
    const carried = (await here()) ?? (await handedOver(options, wanted));
    if (carried) return carried;
    if (options.signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was changed");
    if (tries === slowReads)
      options.onSlow("another command is about to begin a run; press Ctrl-C not to wait for it");
    await clock.sleep(pollMs, options.signal);
  }
}

/** Applies an order that needs no service. Null when another process has the workspace's lock. */
export async function carriedOutHere(
  { workspace, clock }: Pick<GiveOptions, "workspace" | "clock">,
  wanted: WantedOrder,
  taken?: WorkspaceLock,
): Promise<Carried | null> {
  const lock = taken ?? (await takeWorkspaceLock(workspace, clock));
  if (!lock) return null;
  try {
    const store = await lock.openStore();
    try {
      const { run, order } = (await wanted(store, null)) ?? noOrder();
      return { ...(await outcomeHere(store, workspace, clock, { run, order })), run, order, by: null };
    } finally {
      await store.close();
    }
  } finally {
    await lock.release();
  }
}

function noOrder(): never {
  throw new Error("an order that waits although nobody has the workspace");
}

async function outcomeHere(
  store: Store,
  workspace: Workspace,
  clock: Clock,
  { run, order }: { run: Run; order: Order },
): Promise<OrderOutcome> {
  if (isRunOrder(order))
    return store.together((changes) => applyRunOrder(changes, { clock, atWork: null }, run, order));
  const work = { store, spendLog: null, facts: {}, charges: new Map() };
  const apply = await checkedOrder(work, run, order);
  let decided: AppliedOrder["decisions"] = [];
  const outcome = await store.together(function* (changes) {
    const { done, runs, decisions } = yield* apply(changes);
    decided = decisions;
    if (runs.length === 0) return { kind: "done" as const, message: done };
    for (const each of runs) yield* leaveOpen(changes, clock.now(), each);
    const commands = runs.map((each) => `\`${resumeCommand(each, false)}\``);
    return { kind: "done" as const, message: `${done}: ${commands.join(" and ")}` };
  });
  await openReceipts(nodeDisk, workspace, () => clock.now()).decided(decided ?? []);
  return outcome;
}

/** Null when the running process ended without applying it. */
async function handedOver(options: GiveOptions, wanted: WantedOrder): Promise<Carried | null> {
  const { workspace, clock, signal, onSlow } = options;
  return withStore(workspace, clock, async (store) => {
    const by = await lockOwnerOf(workspace);
    const meant = await wanted(store, by);
    if (meant === null) return null;
    const { run, order } = meant;
    const id = await store.give(run.id, order);
    for (let reads = 1; ; reads++) {
      const outcome = await store.outcomeOf(id);
      if (outcome) return outcome.kind === "void" ? null : { ...outcome, run, order, by };
      if (signal.aborted && (await store.withdraw(id))) {
        throw new EarlyExit("interrupted", `interrupted; the order to ${order.do} was withdrawn`);
      }
      if (reads % ownerReads === 0 && (await lockOwnerOf(workspace)) === null)
        if (await store.withdraw(id)) return null;
      if (reads === slowReads)
        onSlow("the running process has not applied the order yet; press Ctrl-C to withdraw it");
      await clock.sleep(pollMs, signal);
    }
  });
}

/** Applies the order in this process, and continues its run. */
export function continuationOf(findItems: FindItems, consent: PriceConsent): Continuation {
  let wanted: ItemRequest | null = null;
  return {
    async choose(store) {
      wanted = await findItems(store);
      return wanted.run;
    },
    async change({ store, account, workspace }, _, now, { refused }) {
      if (!wanted) throw new Error("an order that was never found");
      const { run, order, offered, note = null } = wanted;
      if (refused !== null && "agreed" in order)
        throw new EarlyExit("usage", `${refused}. Nothing was changed.`);
      const facts = await factsFor(order, account);
      const charges = await account.accounts.highestCharges(account.accountId());
      // Nobody is asked about a price of what cannot be made.
      if (order.do === "redo") await checkRedo(store, order, facts);
      const ofPrompt =
        order.do === "redo" && facts.models ? promptNote(offered, order.change, facts.models) : null;
      const notes = [note, ofPrompt].filter((each) => each !== null).join("\n");
      const priced = { order, offered: pricesNow(offered, facts, charges), note: notes || null };
      const agreed = await agreedTo(priced, consent, await plannedRest(store, run, order));
      const work = { store, spendLog: account.spendLog, facts, charges };
      const apply = await checkedOrder(work, run, agreed);
      const { runs, decisions = [] } = await store.together(function* (changes) {
        const applied = yield* apply(changes);
        // If this process ends before it continues the run, `resume` does.
        for (const each of applied.runs) yield* leaveOpen(changes, now, each);
        return applied;
      });
      await openReceipts(nodeDisk, workspace, () => now).decided(decisions);
      const own = await coveringOrder(store, runs[0] ?? run, now);
      return { ...own, requests: own.requests + (needsFacts(order) ? 1 : 0) };
    },
  };
}

/**
 * The run with options that let it do what was just agreed to. A rebuilt run has no cap of a person's choice: it gets one
 * that covers this and no more.
 */
async function coveringOrder(store: Store, run: Run, now: number): Promise<Run> {
  const cap = run.options.rebuilt === true ? { maxCredits: await capNeeded(store, run) } : {};
  const options = { ...withoutPastEnd(run.options, now), ...cap };
  await store.setRun(run.id, { options });
  return { ...run, options };
}

/** Whether anything may be bought: if not, only what is paid for is collected. */
export interface Buying {
  /** Why a person has to agree first; null if nothing speaks against buying. */
  refused: string | null;
}

/** What resume, retry and redo have in common: they continue an existing run and read no manifest. */
export interface Continuation {
  /**
   * Finds the run, before taking a lock or asking the service; called again with the workspace locked. Throws EarlyExit if
   * there is none.
   */
  choose(store: Store): Promise<Run>;
  /** What to do at once if the day's requests are used up, before the run can be changed; absent for what the run says. */
  onDailyLimit?: RunOptions["onDailyLimit"];
  /**
   * Makes changes before the run continues, with the workspace locked and the account known; returns the run to
   * continue.
   */
  change?(opened: WorkspaceSession, run: Run, now: number, buying: Buying): Promise<Run>;
}
