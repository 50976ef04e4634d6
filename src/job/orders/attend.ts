import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { offeredPrice } from "../../core/identity.js";
import type { ItemState } from "../../core/item.js";
import { type Credits, inCredits, showCredits, sumOf } from "../../core/money.js";
import {
  type GivenOrder,
  type ItemOrder,
  isRunOrder,
  type OrderOutcome,
  type RunOrder,
} from "../../core/ports/orders.js";
import type { SpendLog } from "../../core/ports/spend-log.js";
import type { Changes, Item, NewItem, Run, Store, TransactionPart } from "../../core/ports/store.js";
import { isOpen } from "../../core/stop.js";
import type { Session } from "../../run/ports.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import { resumeCommand } from "../workspace/find-run.js";
import { mustBeAsked } from "./decide.js";
import { addVariants, todaysPrices, variantsOf } from "./redo.js";
import { type Facts, type Offered, OrderFacts, type ServiceLookup } from "./request.js";
import { adopt, mustBeHeld, mustHaveTask, refetch } from "./resolve.js";

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
      if (isRunOrder(order)) await this.onRun(run, order, given);
      else
        await this.onItems(run, order, given).catch((error: unknown) =>
          this.store.finishOrder(given.id, refused(error)),
        );
    }
  }

  private async onRun(run: Run, order: RunOrder, given: GivenOrder): Promise<void> {
    const { clock, session, busy } = this;
    const isOwn = run.id === session.settings.run.id;
    const how = { clock, atWork: isOwn ? busy : null };
    const outcome = await this.carryOut(given, (changes) => applyRunOrder(changes, how, run, order));
    if (isOwn && outcome?.kind === "done") stopFor(session.gate, order.do);
  }

  /**
   * Nothing is done while the service is being asked about it, or its items have a request in flight. Throws EarlyExit if
   * refused.
   */
  private async onItems(run: Run, order: ItemOrder, given: GivenOrder): Promise<void> {
    const { store, session } = this;
    const facts: Facts | null = this.facts.of(given);
    if (facts === null || order.items.some((id) => this.busy.has(id))) return;
    if (run.state === "cancelled" && run.id === session.settings.run.id && "agreed" in order)
      throw new EarlyExit(
        "usage",
        `run ${run.id} was cancelled and submits nothing more; try again when it has ended`,
      );
    const { spendLog, accounts, accountId } = session.ports;
    const charges = await accounts.highestCharges(accountId);
    const apply = await checkedOrder({ store, spendLog, facts, charges }, run, order);
    const handOn = this.handOn.bind(this);
    const outcome = await this.carryOut(given, function* (changes) {
      const { run: changed, done, continues } = yield* apply(changes);
      const message = continues ? `${done}; ${yield* handOn(changes, changed, order)}` : done;
      return { kind: "done", message };
    });
    // A person wants another try, so earlier failures of the model do not count.
    if (outcome !== null && "agreed" in order)
      for (const id of order.items) session.gate.breaker.forget((await store.item(id)).model);
  }

  /**
   * Changes what the order says and records its outcome, both or neither: an order without an outcome is given again, and
   * must not be carried out again. Null if the order was withdrawn.
   */
  private carryOut(
    { id }: GivenOrder,
    work: (changes: Changes) => TransactionPart<OrderOutcome>,
  ): Promise<OrderOutcome | null> {
    return this.store.together(function* (changes) {
      if (!(yield* changes.isWaiting(id))) return null;
      const outcome = yield* work(changes);
      yield* changes.finishOrder(id, outcome);
      return outcome;
    });
  }

  /** Ensures that a run continues with the changed items, and says when. */
  private *handOn(changes: Changes, run: Run, order: ItemOrder): TransactionPart<string> {
    const { session } = this;
    const later = `continue with \`${resumeCommand(run, false)}\``;
    const submits = "agreed" in order || order.do === "approve";
    const own = session.settings.run.id;
    const [stop] = session.gate.stops;
    if (run.id === own && (!stop || isOpen(submits ? "submit" : "poll", session.gate.stops)))
      return `run ${own}, in progress, continues with it`;
    if (run.id === own && stop) return `run ${own} is about to end (${stop.message}): ${later}`;
    yield* leaveOpen(changes, this.clock, run);
    return `once run ${own}, in progress, has ended, ${later}`;
  }
}

/** The run has something to do again. */
export function* leaveOpen(
  changes: Changes,
  clock: Clock,
  { id, state, endedAt }: Run,
): TransactionPart<void> {
  if (state === "cancelled") return;
  yield* changes.setRun(id, { state: "interrupted", exit: null, endedAt: endedAt ?? clock.now() });
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
  clock: Clock;
  /** The items with a request in flight; null if no process carries on the order's run. */
  atWork: ReadonlySet<number> | null;
}

/** Changes the run as ordered and returns the outcome. A refused order changes nothing. */
export function* applyRunOrder(
  changes: Changes,
  how: RunOrderContext,
  run: Run,
  order: RunOrder,
): TransactionPart<OrderOutcome> {
  const over = run.state === "finished" || (run.state === "cancelled" && !run.owes);
  if (over)
    return { kind: "refused", message: `run ${run.id} is ${run.state}; nothing is left to ${order.do}` };
  const message = yield* order.do === "pause" ? pause(changes, how, run) : cancel(changes, how, run);
  return { kind: "done", message };
}

function* pause(changes: Changes, { clock, atWork }: RunOrderContext, run: Run): TransactionPart<string> {
  if (run.state !== "cancelled") yield* changes.setRun(run.id, { state: "paused" });
  const goOn = `continue with \`${resumeCommand(run, false)}\``;
  if (atWork)
    return `run ${run.id} is paused: it finishes requests in flight and starts nothing new; ${goOn}`;
  yield* closed(changes, clock, run);
  return `run ${run.id} is paused (it was not in progress); ${goOn}`;
}

function* cancel(changes: Changes, { clock, atWork }: RunOrderContext, run: Run): TransactionPart<string> {
  const dropped = yield* changes.cancelRun(run.id, atWork ?? new Set());
  const counts = yield* changes.counts(run.id);
  const owed = paidFor.reduce((sum, state) => sum + counts[state], 0);
  const nothing = dropped === 0 ? "no item was left to submit" : `${count(dropped, "item")} not submitted`;
  const said = `run ${run.id} is cancelled: ${nothing}`;
  if (!atWork) yield* closed(changes, clock, run);
  if (owed === 0) return said;
  return atWork
    ? `${said}; the ${count(owed, "item")} at the service ${owed === 1 ? "is" : "are"} still collected by the running process`
    : `${said}; \`${resumeCommand(run, false)}\` collects the ${count(owed, "item")} at the service, which are or may be paid for`;
}

const paidFor: readonly ItemState[] = ["submitting", "unknown", "processing", "overdue", "ready"];

/** An interrupted process leaves its run without an end on record. */
function* closed(changes: Changes, clock: Clock, { id, endedAt }: Run): TransactionPart<void> {
  if (endedAt === null) yield* changes.setRun(id, { endedAt: clock.now() });
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

/** What an order to items has changed, in a few words. */
export interface AppliedOrder {
  /** The run that continues with the items: theirs, or the one started for them. */
  run: Run;
  done: string;
  /** It has yet to continue with them. */
  continues: boolean;
}

/**
 * Checks an order to items and returns what applies it. Throws EarlyExit, and nothing is changed, if the items changed since
 * the person saw them.
 */
export async function checkedOrder(
  work: ItemWork,
  run: Run,
  order: ItemOrder,
): Promise<(changes: Changes) => TransactionPart<AppliedOrder>> {
  const items = await Promise.all(order.items.map((id) => work.store.item(id)));
  if (order.do === "redo") return redo(work, run, items, order);
  if (order.do === "approve" || order.do === "reject") return decide(run, items, order.do);
  const apply =
    order.do === "retry" ? retry(work, run, items, order.agreed) : await resolve(work, items, order);
  return function* (changes) {
    const done = yield* apply(changes);
    const changed = "agreed" in order ? yield* reopened(changes, run, order.items) : run;
    return { run: changed, done, continues: order.do !== "skip" };
  };
}

function decide(
  run: Run,
  items: readonly Item[],
  what: "approve" | "reject",
): (changes: Changes) => TransactionPart<AppliedOrder> {
  for (const item of items) mustBeAsked(item);
  const approval = what === "approve" ? "approved" : "rejected";
  const [first] = items;
  const named = items.length === 1 ? `${terminalText(first?.rowId ?? "")} is` : `${items.length} items are`;
  return function* (changes) {
    const released = yield* changes.approve(
      items.map(({ id }) => id),
      approval,
    );
    const next =
      released === 0 ? "" : `, and ${count(released, "item that waited", "items that waited")} can be made`;
    return { run, done: `${named} ${approval}${next}`, continues: released > 0 };
  };
}

/** Reopens a cancelled run for these items; its other items are still not submitted. */
function* reopened(changes: Changes, run: Run, items: readonly number[]): TransactionPart<Run> {
  if (run.state !== "cancelled") return run;
  yield* changes.cancelRun(run.id, new Set(items));
  yield* changes.setRun(run.id, { state: "interrupted" });
  return { ...run, state: "interrupted" };
}

async function redo(
  { store, facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  { agreed, rejects }: Extract<ItemOrder, { do: "redo" }>,
): Promise<(changes: Changes) => TransactionPart<AppliedOrder>> {
  if (!facts.models) throw new Error("a redo without today's prices");
  const variants = await variantsOf(store, run, pricesNow(items, facts, charges));
  withinPrice(variants, agreed);
  return function* (changes) {
    if (rejects)
      yield* changes.approve(
        items.map(({ id }) => id),
        "rejected",
      );
    return {
      run: yield* addVariants(changes, run, variants),
      continues: true,
      done: `${variants.map(({ rowId }) => rowId).join(", ")} ${variants.length === 1 ? "is" : "are"} planned`,
    };
  };
}

function retry(
  { facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  agreed: Credits,
): (changes: Changes) => TransactionPart<string> {
  const failed = pricesNow(
    items.filter(({ state }) => state === "failed"),
    facts,
    charges,
  );
  if (failed.length === 0)
    throw new EarlyExit("usage", `nothing to retry in run ${run.id}: these items are not failed any more`);
  withinPrice(failed, agreed);
  return function* (changes) {
    for (const { id, price } of failed) yield* changes.apply(id, "retry", { nextAt: 0, price });
    return `${count(failed.length, "failed item")} ${failed.length === 1 ? "is" : "are"} planned again`;
  };
}

async function resolve(
  { store, spendLog, facts, charges }: ItemWork,
  items: readonly Item[],
  order: Exclude<ItemOrder, { do: "redo" | "approve" | "reject" }>,
): Promise<(changes: Changes) => TransactionPart<string>> {
  const [item] = items;
  if (!item) throw new Error(`an order to ${order.do} nothing`);
  for (const each of items) mustBeHeld(each);
  const isOne = items.length === 1;
  const what = isOne ? terminalText(item.rowId) : count(items.length, "item");
  switch (order.do) {
    case "skip":
      return function* (changes) {
        for (const { id } of items) yield* changes.apply(id, "skipped", { note: "skipped by a person" });
        return `${what} ${isOne ? "is" : "are"} skipped; ${isOne ? "its" : "their"} possible cost stays counted`;
      };
    case "refetch":
      for (const each of items) await mustHaveTask(store, each);
      return function* (changes) {
        for (const { id } of items) yield* refetch(changes, id);
        return `the outputs of ${what} will be downloaded again`;
      };
    case "adopt": {
      if (!spendLog || !facts.task) throw new Error("a task is adopted without its record");
      const found = await adopt(store, spendLog, item, facts.task);
      return function* (changes) {
        yield* changes.adopt(item.id, found);
        return `task ${order.task} is now the task of ${terminalText(item.rowId)}`;
      };
    }
    default: {
      const priced = pricesNow(items, facts, charges);
      withinPrice(priced, order.agreed);
      return function* (changes) {
        for (const { id, price } of priced) yield* changes.apply(id, "resubmit", { nextAt: 0, price });
        return `${what} will be submitted again`;
      };
    }
  }
}

/** Refuses a higher price than the person agreed to: prices may have changed since. */
function withinPrice(items: readonly Pick<NewItem, "price">[], agreed: Credits): void {
  const price = sumOf(items.map((item) => item.price));
  if (price <= agreed) return;
  throw new EarlyExit(
    "usage",
    `the price has changed: expected at most ${showCredits(agreed)} as agreed to, got ${inCredits(price)}. Nothing was changed.`,
  );
}
