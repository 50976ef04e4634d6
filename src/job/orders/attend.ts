import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import {
  type GivenOrder,
  type ItemOrder,
  isRunOrder,
  type OrderOutcome,
  type RunOrder,
} from "../../core/ports/orders.js";
import type { Run } from "../../core/ports/store.js";
import { isOpen } from "../../core/stop.js";
import type { Session } from "../../run/ports.js";
import type { Changes, Store, TransactionPart } from "../../store/workspace/workspace.js";
import { resumeCommand } from "../../workspace/find-run.js";
import { type AppliedOrder, applyRunOrder, checkedOrder, leaveOpen } from "./apply.js";
import { type Facts, OrderFacts, type ServiceLookup } from "./facts.js";

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
  /** Looks up at the service what orders depend on. */
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
      // The loop reports a database that cannot be read, and an order that could not be examined waits.
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
    if (!isOwn || outcome?.kind !== "done") return;
    stopFor(session.gate, order.do);
    const { service, log } = session.ports;
    if (order.do === "cancel" && service.announced().cancel)
      void this.stopTasks(run).catch((error: unknown) =>
        log.warn({ error: String(error) }, "not every task could be stopped at the service"),
      );
  }

  /** Asks the service to stop what it has not finished; the polls find out what became of each task. */
  private async stopTasks({ id }: Run): Promise<void> {
    const { store, clock, session } = this;
    for (const item of await store.items(id, ["processing", "overdue"])) {
      const taskId = (await store.attempt(item.id))?.taskId;
      if (taskId == null) continue;
      await session.ports.service.cancelTask(taskId);
      await store.reschedule(item.id, clock.now());
    }
    session.ports.bell.ring();
  }

  /**
   * Does nothing while the service is being asked about the order, or an item of it has a request in flight. Throws
   * EarlyExit if the order is refused.
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
    let decided: AppliedOrder["decisions"] = [];
    const outcome = await this.carryOut(given, function* (changes) {
      const { done, runs, decisions } = yield* apply(changes);
      decided = decisions;
      const said = [done];
      for (const each of runs) said.push(yield* handOn(changes, each, order));
      return { kind: "done", message: said.join("; ") };
    });
    if (outcome !== null) await this.record(decided ?? []);
    // A person wants another try, so earlier failures of the model do not count.
    if (outcome !== null && "agreed" in order)
      for (const id of order.items) session.gate.breaker.forget((await store.item(id)).model);
  }

  /** The database has what was decided; a disk that refuses the receipts does not end the run. */
  private async record(decided: NonNullable<AppliedOrder["decisions"]>): Promise<void> {
    const { receipts, log } = this.session.ports;
    await receipts
      .decided(decided)
      .catch((error: unknown) =>
        log.warn(
          { error: String(error) },
          "a decision could not be added to the receipts, only to the database",
        ),
      );
  }

  /**
   * Carries out the order and records its outcome, both or neither: an order without an outcome is given again, and
   * must not be carried out twice. Null if the order was withdrawn.
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
    yield* leaveOpen(changes, this.clock.now(), run);
    return `once run ${own}, in progress, has ended, ${later}`;
  }
}

function refused(error: unknown): OrderOutcome {
  if (error instanceof EarlyExit) return { kind: "refused", message: error.message };
  throw error;
}

function stopFor(gate: Session["gate"], what: "pause" | "cancel"): void {
  if (what === "pause") gate.stop("paused", "the run was paused");
  else gate.stop("cancelled", "the run was cancelled; submitted items are still collected");
}
