import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { offeredPrice } from "../../core/identity.js";
import type { ItemState } from "../../core/item.js";
import { type Credits, inCredits, plus, showCredits } from "../../core/money.js";
import {
  type GivenOrder,
  type ItemOrder,
  isRunOrder,
  type OrderOutcome,
  type RunOrder,
} from "../../core/ports/orders.js";
import type { SpendLog } from "../../core/ports/spend-log.js";
import type { Item, NewItem, Run, Store } from "../../core/ports/store.js";
import { isOpen } from "../../core/stop.js";
import type { Session } from "../../run/ports.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import { resumeCommand } from "../workspace/find-run.js";
import { mustBeAsked } from "./decide.js";
import { addVariants, todaysPrices, variantsOf } from "./redo.js";
import { type Facts, type Offered, OrderFacts, type ServiceLookup } from "./request.js";
import { adopt, mustBeHeld, refetch } from "./resolve.js";

/** Milliseconds between two checks for orders: they are applied within a second. */
const pollMs = 500;

/** The orders that arrive during a run. */
export interface OrderPolling {
  /** Applies the waiting orders; the loop calls it between two turns. */
  attend(busy: ReadonlySet<number>): Promise<void>;
  /** Accepts no more orders, and waits for the requests made for them. */
  close(): Promise<void>;
}

interface AttendOptions {
  store: Store;
  clock: Clock;
  session: Session;
  /** Answers what orders depend on. */
  account: ServiceLookup;
}

/**
 * Polls for orders and wakes the loop for them. Orders that exist already were given to a process that has ended; the
 * command that still waits for them gives them again.
 */
export async function pollOrders(options: AttendOptions): Promise<OrderPolling> {
  const { store, clock, session } = options;
  for (const { id } of await store.waitingOrders()) {
    await store.finishOrder(id, { kind: "void", message: "the running process has ended" });
  }
  const over = new AbortController();
  const facts = new OrderFacts(session, options.account);
  let waiting = false;
  const poll = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(pollMs, over.signal);
      // A database that cannot be read is reported by the loop, and an order that could not be looked into waits.
      const orders = over.signal.aborted ? [] : await store.waitingOrders().catch(() => [null]);
      for (const given of orders)
        if (given && !over.signal.aborted) await facts.ask(given).catch(() => undefined);
      if (orders.length === 0) continue;
      waiting = true;
      session.ports.bell.ring();
    }
  };
  const polling = poll();
  return {
    async attend(busy) {
      if (!waiting) return;
      waiting = false;
      await new OrderRound(store, clock, session, facts, busy).carryOutAll();
    },
    async close() {
      over.abort();
      await polling;
      await facts.close();
    },
  };
}

/** Applies the orders that wait at one instant. */
class OrderRound {
  constructor(
    readonly store: Store,
    readonly clock: Clock,
    private readonly session: Session,
    private readonly facts: OrderFacts,
    private readonly busy: ReadonlySet<number>,
  ) {}

  async carryOutAll(): Promise<void> {
    for (const given of await this.store.waitingOrders()) {
      const run = await this.store.run(given.runId);
      if (!run) throw new Error(`an order for run ${given.runId}, which is gone`);
      const { order } = given;
      const outcome = isRunOrder(order)
        ? await this.onRun(run, order)
        : await this.onItems(run, order, given).catch(refused);
      if (outcome) await this.store.finishOrder(given.id, outcome);
    }
  }

  private async onRun(run: Run, order: RunOrder): Promise<OrderOutcome> {
    const { store, clock, session, busy } = this;
    const isOwn = run.id === session.settings.run.id;
    const outcome = await applyRunOrder({ store, clock, atWork: isOwn ? busy : null }, run, order);
    if (isOwn && outcome.kind === "done") stopFor(session.gate, order.do);
    return outcome;
  }

  /** Null while the service is being asked about it, or its items have a request in flight. Throws EarlyExit if refused. */
  private async onItems(run: Run, order: ItemOrder, given: GivenOrder): Promise<OrderOutcome | null> {
    const { store, session } = this;
    const facts: Facts | null = this.facts.of(given);
    if (facts === null || order.items.some((id) => this.busy.has(id))) return null;
    if (run.state === "cancelled" && run.id === session.settings.run.id && "agreed" in order)
      throw new EarlyExit(
        "usage",
        `run ${run.id} was cancelled and submits nothing more; try again when it has ended`,
      );
    const { spendLog, accounts, accountId } = session.ports;
    const charges = await accounts.highestCharges(accountId);
    const changed = await orderItems({ store, spendLog, facts, charges }, run, order);
    // A person wants another try, so earlier failures of the model do not count.
    if ("agreed" in order)
      for (const id of order.items) session.gate.breaker.forget((await store.item(id)).model);
    const { done } = changed;
    if (!changed.continues) return { kind: "done", message: done };
    return { kind: "done", message: `${done}; ${await this.handOn(changed.run, order)}` };
  }

  /** Ensures that a run continues with the changed items, and says when. */
  private async handOn(run: Run, order: ItemOrder): Promise<string> {
    const { session } = this;
    const later = `continue with \`${resumeCommand(run, false)}\``;
    const submits = "agreed" in order || order.do === "approve";
    const own = session.settings.run.id;
    const [stop] = session.gate.stops;
    if (run.id === own && (!stop || isOpen(submits ? "submit" : "poll", session.gate.stops)))
      return `run ${own}, in progress, continues with it`;
    if (run.id === own && stop) return `run ${own} is about to end (${stop.message}): ${later}`;
    await leaveOpen(this, run);
    return `once run ${own}, in progress, has ended, ${later}`;
  }
}

/** The run has something to do again. */
export async function leaveOpen(
  { store, clock }: { store: Store; clock: Clock },
  { id, state, endedAt }: Run,
): Promise<void> {
  if (state === "cancelled") return;
  await store.setRun(id, { state: "interrupted", exit: null, endedAt: endedAt ?? clock.now() });
}

function refused(error: unknown): OrderOutcome {
  if (error instanceof EarlyExit) return { kind: "refused", message: error.message };
  throw error;
}

function stopFor(gate: Session["gate"], what: "pause" | "cancel"): void {
  if (what === "pause") gate.stop("paused", "the run was paused");
  else gate.stop("cancelled", "the run was cancelled; submitted items are still collected");
}

/** An order is applied by the process that has the workspace's lock. */
export interface RunOrderContext {
  store: Store;
  clock: Clock;
  /** The items with a request in flight; null if no process carries on the order's run. */
  atWork: ReadonlySet<number> | null;
}

/** Changes the run as ordered and returns the outcome. A refused order changes nothing. */
export async function applyRunOrder(how: RunOrderContext, run: Run, order: RunOrder): Promise<OrderOutcome> {
  const over = run.state === "finished" || (run.state === "cancelled" && !run.owes);
  if (over)
    return { kind: "refused", message: `run ${run.id} is ${run.state}; nothing is left to ${order.do}` };
  return { kind: "done", message: await (order.do === "pause" ? pause(how, run) : cancel(how, run)) };
}

async function pause({ store, clock, atWork }: RunOrderContext, run: Run): Promise<string> {
  if (run.state !== "cancelled") await store.setRun(run.id, { state: "paused" });
  const goOn = `continue with \`${resumeCommand(run, false)}\``;
  if (atWork)
    return `run ${run.id} is paused: it finishes requests in flight and starts nothing new; ${goOn}`;
  await closed(store, clock, run);
  return `run ${run.id} is paused (it was not in progress); ${goOn}`;
}

async function cancel({ store, clock, atWork }: RunOrderContext, run: Run): Promise<string> {
  const dropped = await store.cancelRun(run.id, atWork ?? new Set());
  const counts = await store.counts(run.id);
  const owed = paidFor.reduce((sum, state) => sum + counts[state], 0);
  const nothing = dropped === 0 ? "no item was left to submit" : `${count(dropped, "item")} not submitted`;
  const said = `run ${run.id} is cancelled: ${nothing}`;
  if (!atWork) await closed(store, clock, run);
  if (owed === 0) return said;
  return atWork
    ? `${said}; the ${count(owed, "item")} at the service ${owed === 1 ? "is" : "are"} still collected by the running process`
    : `${said}; \`${resumeCommand(run, false)}\` collects the ${count(owed, "item")} at the service, which are or may be paid for`;
}

const paidFor: readonly ItemState[] = ["submitting", "unknown", "processing", "overdue", "ready"];

/** An interrupted process leaves its run without an end on record. */
async function closed(store: Store, clock: Clock, { id, endedAt }: Run): Promise<void> {
  if (endedAt === null) await store.setRun(id, { endedAt: clock.now() });
}

export interface ItemWork {
  store: Store;
  /** Null without an account, which only skipping an item does not need. */
  spendLog: SpendLog | null;
  facts: Facts;
  /** The highest charges seen, by price group. */
  charges: ReadonlyMap<string, Credits>;
}

/** Items at today's prices. Throws EarlyExit. */
export function pricesNow<Priced extends Offered>(
  items: readonly Priced[],
  { models }: Facts,
  charges: ReadonlyMap<string, Credits>,
): Priced[] {
  if (models) return todaysPrices(items, models, charges);
  return items.map((item) => ({ ...item, price: offeredPrice(item, item.price, charges) }));
}

/**
 * Applies an order to items and says in a few words what was done; with `continues`, their run, or the one started for them,
 * has yet to continue with it. Throws EarlyExit, and changes nothing, if the items changed since the person saw them.
 */
export async function orderItems(
  work: ItemWork,
  run: Run,
  order: ItemOrder,
): Promise<{ run: Run; done: string; continues: boolean }> {
  const { store } = work;
  const items = await Promise.all(order.items.map((id) => store.item(id)));
  if (order.do === "redo") return redo(work, run, items, order);
  if (order.do === "approve" || order.do === "reject") return decide(store, run, items, order.do);
  const done =
    order.do === "retry" ? await retry(work, run, items, order.agreed) : await resolve(work, items, order);
  return {
    run: "agreed" in order ? await reopened(store, run, order.items) : run,
    done,
    continues: order.do !== "skip",
  };
}

async function decide(
  store: Store,
  run: Run,
  items: readonly Item[],
  what: "approve" | "reject",
): Promise<{ run: Run; done: string; continues: boolean }> {
  for (const item of items) mustBeAsked(item);
  const approval = what === "approve" ? "approved" : "rejected";
  const released = await store.approve(
    items.map(({ id }) => id),
    approval,
  );
  const [first] = items;
  const named = items.length === 1 ? `${terminalText(first?.rowId ?? "")} is` : `${items.length} items are`;
  const next =
    released === 0 ? "" : `, and ${count(released, "item that waited", "items that waited")} can be made`;
  return { run, done: `${named} ${approval}${next}`, continues: released > 0 };
}

/** Reopens a cancelled run for these items; its other items are still not submitted. */
async function reopened(store: Store, run: Run, items: readonly number[]): Promise<Run> {
  if (run.state !== "cancelled") return run;
  await store.cancelRun(run.id, new Set(items));
  await store.setRun(run.id, { state: "interrupted" });
  return { ...run, state: "interrupted" };
}

async function redo(
  { store, facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  { agreed, rejects }: Extract<ItemOrder, { do: "redo" }>,
): Promise<{ run: Run; done: string; continues: true }> {
  if (!facts.models) throw new Error("a redo without today's prices");
  const variants = await variantsOf(store, run, pricesNow(items, facts, charges));
  withinPrice(variants, agreed);
  if (rejects)
    await store.approve(
      items.map(({ id }) => id),
      "rejected",
    );
  return {
    run: await addVariants(store, run, variants),
    continues: true,
    done: `${variants.map(({ rowId }) => rowId).join(", ")} ${variants.length === 1 ? "is" : "are"} planned`,
  };
}

async function retry(
  { store, facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  agreed: Credits,
): Promise<string> {
  const failed = pricesNow(
    items.filter(({ state }) => state === "failed"),
    facts,
    charges,
  );
  if (failed.length === 0)
    throw new EarlyExit("usage", `nothing to retry in run ${run.id}: these items are not failed any more`);
  withinPrice(failed, agreed);
  for (const { id, price } of failed) await store.apply(id, "retry", { nextAt: 0, price });
  return `${count(failed.length, "failed item")} ${failed.length === 1 ? "is" : "are"} planned again`;
}

async function resolve(
  { store, spendLog, facts, charges }: ItemWork,
  items: readonly Item[],
  order: Exclude<ItemOrder, { do: "redo" | "approve" | "reject" }>,
): Promise<string> {
  const [item] = items;
  if (!item) throw new Error(`an order to ${order.do} nothing`);
  for (const each of items) mustBeHeld(each);
  const isOne = items.length === 1;
  const what = isOne ? terminalText(item.rowId) : count(items.length, "item");
  switch (order.do) {
    case "skip":
      for (const { id } of items) await store.apply(id, "skipped", { note: "skipped by a person" });
      return `${what} ${isOne ? "is" : "are"} skipped; ${isOne ? "its" : "their"} possible cost stays counted`;
    case "refetch":
      for (const each of items) await refetch(store, each);
      return `the outputs of ${what} will be downloaded again`;
    case "adopt":
      if (!spendLog || !facts.task) throw new Error("a task is adopted without its record");
      await adopt(store, spendLog, item, facts.task);
      return `task ${order.task} is now the task of ${terminalText(item.rowId)}`;
    default: {
      const priced = pricesNow(items, facts, charges);
      withinPrice(priced, order.agreed);
      for (const { id, price } of priced) await store.apply(id, "resubmit", { nextAt: 0, price });
      return `${what} will be submitted again`;
    }
  }
}

/** Refuses a higher price than the person agreed to: prices may have changed since. */
function withinPrice(items: readonly Pick<NewItem, "price">[], agreed: Credits): void {
  const price = plus(...items.map((item) => item.price));
  if (price <= agreed) return;
  throw new EarlyExit(
    "usage",
    `the price has changed: expected at most ${showCredits(agreed)} as agreed to, got ${inCredits(price)}. Nothing was changed.`,
  );
}
