import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import {
  type GivenOrder,
  type ItemOrder,
  isRunOrder,
  type OrderOutcome,
  type RunOrder,
} from "../../core/ports/orders.js";
import type { Run, Store } from "../../core/ports/store.js";
import { isOpen } from "../../core/stop.js";
import type { Session } from "../../run/ports.js";
import { count } from "../../text/amounts.js";
import { resumeCommand } from "../workspace/find-run.js";
import { orderItems } from "./apply.js";
import { type Facts, OrderFacts, type ServiceLookup } from "./facts.js";

/** Milliseconds between two looks for orders: they are carried out within a second. */
const lookMs = 500;

/** The orders that come in while a run is carried on. */
export interface OrderPolling {
  /** Carries out what was ordered; the loop calls it between two turns. */
  attend(busy: ReadonlySet<number>): Promise<void>;
  /** Takes no more orders, and waits for what was asked for them. */
  close(): Promise<void>;
}

interface AttendOptions {
  store: Store;
  clock: Clock;
  session: Session;
  /** Whom orders have something asked of. */
  account: ServiceLookup;
}

/**
 * DuePolls for orders and wakes the loop for them. Orders that are there already were given to a process that is gone, and
 * whoever still waits for them gives them again.
 */
export async function pollOrders(options: AttendOptions): Promise<OrderPolling> {
  const { store, clock, session } = options;
  for (const { id } of await store.waitingOrders()) {
    await store.settle(id, { kind: "void", message: "the process that was at work has ended" });
  }
  const over = new AbortController();
  const facts = new OrderFacts(session, options.account);
  let waiting = false;
  const look = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(lookMs, over.signal);
      // A database that cannot be read is the loop's to tell.
      const orders = over.signal.aborted ? [] : await store.waitingOrders().catch(() => [null]);
      for (const given of orders) if (given && !over.signal.aborted) await facts.ask(given);
      if (orders.length === 0) continue;
      waiting = true;
      session.ports.bell.ring();
    }
  };
  const looking = look();
  return {
    async attend(busy) {
      if (!waiting) return;
      waiting = false;
      await new Duty(store, clock, session, facts, busy).carryOutAll();
    },
    async close() {
      over.abort();
      await looking;
      await facts.close();
    },
  };
}

/** What is done about the orders that wait at one instant. */
class Duty {
  constructor(
    private readonly store: Store,
    private readonly clock: Clock,
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
      if (outcome) await this.store.settle(given.id, outcome);
    }
  }

  private async onRun(run: Run, order: RunOrder): Promise<OrderOutcome> {
    const { store, clock, session, busy } = this;
    const isOwn = run.id === session.settings.run.id;
    const outcome = await applyRunOrder({ store, clock, atWork: isOwn ? busy : null }, run, order);
    if (isOwn && outcome.kind === "done") stopFor(session.gate, order.do);
    return outcome;
  }

  /** Null while what it turns on is being asked, or its items are being worked on. Throws EarlyExit for what is refused. */
  private async onItems(run: Run, order: ItemOrder, given: GivenOrder): Promise<OrderOutcome | null> {
    const { store, session } = this;
    const facts: Facts | null = this.facts.of(given);
    if (facts === null || order.items.some((id) => this.busy.has(id))) return null;
    if (run.state === "cancelled" && run.id === session.settings.run.id && "agreed" in order)
      throw new EarlyExit(
        "usage",
        `run ${run.id} was cancelled, and submits nothing more until it has ended`,
      );
    const { books, accounts, accountId } = session.ports;
    const charges = await accounts.highestCharges(accountId);
    const changed = await orderItems({ store, books, facts, charges }, run, order);
    // A person wants it tried again, whatever failed before.
    if ("agreed" in order)
      for (const id of order.items) session.gate.breaker.forget((await store.item(id)).model);
    const { done } = changed;
    if (order.do === "skip") return { kind: "done", message: done };
    return { kind: "done", message: `${done}; ${await this.handOn(changed.run, order)}` };
  }

  /** Sees to it that a run goes on with what has changed, and says when. */
  private async handOn(run: Run, order: ItemOrder): Promise<string> {
    const { session, store } = this;
    const later = `\`${resumeCommand(run, false)}\` goes on with it`;
    const own = session.settings.run.id;
    const [stop] = session.gate.stops;
    if (run.id === own && (!stop || isOpen("agreed" in order ? "submit" : "poll", session.gate.stops)))
      return `run ${own}, which is at work, goes on with it`;
    if (run.id === own && stop) return `run ${own} is about to end (${stop.message}): ${later}`;
    const endedAt = run.endedAt ?? this.clock.now();
    if (run.state !== "cancelled") await store.setRun(run.id, { state: "interrupted", exit: null, endedAt });
    return `once run ${own}, which is at work, has ended, ${later}`;
  }
}

function refused(error: unknown): OrderOutcome {
  if (error instanceof EarlyExit) return { kind: "refused", message: error.message };
  throw error;
}

function stopFor(gate: Session["gate"], what: "pause" | "cancel"): void {
  if (what === "pause") gate.stop("paused", "the run was paused");
  else gate.stop("cancelled", "the run was cancelled; what was submitted before is collected");
}

/** An order is carried out by whoever holds the workspace. */
export interface RunOrderContext {
  store: Store;
  clock: Clock;
  /** A process is at work on the order's run, and these items of it are being worked on. */
  atWork: ReadonlySet<number> | null;
}

/** Changes the run as ordered, and says what came of it. What is refused changes nothing. */
export async function applyRunOrder(how: RunOrderContext, run: Run, order: RunOrder): Promise<OrderOutcome> {
  const over = run.state === "finished" || (run.state === "cancelled" && !run.owes);
  if (over)
    return { kind: "refused", message: `run ${run.id} is ${run.state}; nothing is left to ${order.do}` };
  return { kind: "done", message: await (order.do === "pause" ? pause(how, run) : cancel(how, run)) };
}

async function pause({ store, clock, atWork }: RunOrderContext, run: Run): Promise<string> {
  if (run.state !== "cancelled") await store.setRun(run.id, { state: "paused" });
  const goOn = `\`${resumeCommand(run, false)}\` goes on`;
  if (atWork) return `run ${run.id} is paused: what is under way is awaited, nothing new begins; ${goOn}`;
  await closed(store, clock, run);
  return `run ${run.id} is paused, and no process was at work on it; ${goOn}`;
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
    ? `${said}; the ${count(owed, "item")} at the service ${owed === 1 ? "is" : "are"} still collected by the process at work`
    : `${said}; \`${resumeCommand(run, false)}\` collects the ${count(owed, "item")} at the service, paid for or perhaps paid for`;
}

const paidFor: readonly ItemState[] = ["submitting", "unknown", "processing", "overdue", "ready"];

/** A run that was cut off has no end on record. */
async function closed(store: Store, clock: Clock, { id, endedAt }: Run): Promise<void> {
  if (endedAt === null) await store.setRun(id, { endedAt: clock.now() });
}
