import { EarlyExit } from "../../core/exit.js";
import { type GivenOrder, type ItemOrder, isRunOrder } from "../../core/ports/orders.js";
import { freePlaces, left, NoRequestsUntil, owedRequests } from "../../core/quota/quota.js";
import type { Session } from "../../run/session.js";
import type { Facts } from "./order-items.js";
import { type Asked, factsFor, needsFacts } from "./request.js";

/**
 * What the service says about orders, asked beside the loop, which must not wait for it. A request is made only when it
 * has a place at once and takes none that paid work is owed.
 */
export class FactsOf {
  private readonly known = new Map<number, Facts | Error>();
  private readonly asking = new Map<number, Promise<void>>();

  constructor(
    private readonly session: Session,
    private readonly account: Asked,
  ) {}

  /** Asks for what an order turns on, unless that is known or under way. */
  async ask({ id, order }: GivenOrder): Promise<void> {
    if (isRunOrder(order) || !needsFacts(order) || this.known.has(id) || this.asking.has(id)) return;
    if (!(await this.hasPlace())) return;
    this.asking.set(id, this.read(id, order));
  }

  /** Null until they are known. Throws EarlyExit for what the service refused. */
  of({ id, order }: GivenOrder): Facts | null {
    if (isRunOrder(order) || !needsFacts(order)) return {};
    const found = this.known.get(id) ?? null;
    if (found instanceof Error) throw found;
    return found;
  }

  async close(): Promise<void> {
    await Promise.all(this.asking.values());
  }

  private async hasPlace(): Promise<boolean> {
    const { accounts, accountId, clock, store } = this.session.ports;
    const quota = await accounts.quota(accountId, this.session.claimant);
    const owed = owedRequests(await store.counts(this.session.settings.run.id));
    return freePlaces(quota, clock.now()) >= 1 && left(quota.day) - owed - quota.owedElsewhere >= 1;
  }

  private async read(id: number, order: ItemOrder): Promise<void> {
    this.session.requests++;
    const found = await factsFor(order, this.account).catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    this.asking.delete(id);
    if (!isPassing(found)) this.known.set(id, found);
    this.session.wake();
  }
}

/** Interrupted, or no requests left: whoever waits for the order carries it out when this process has ended. */
function isPassing(found: Facts | Error): boolean {
  const ends = found instanceof EarlyExit && (found.exit === "interrupted" || found.exit === "unfinished");
  return ends || found instanceof NoRequestsUntil;
}
